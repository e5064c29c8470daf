package redisproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Addr returns host and port. It stays the same over Restart.
func (s *Server) Addr() string { return s.addr }

// URL returns the address in the form clients parse: "redis://127.0.0.1:<port>", or what was given
// to Attach, which may hold a password.
func (s *Server) URL() string { return s.url }

// Dir returns the directory with the server's log and data, or "" for an attached server.
func (s *Server) Dir() string { return s.dir }

// Version returns the version number, such as "7.0.15".
func (s *Server) Version() string { return s.version }

// PID returns the process id, or 0 when no process runs or the server is only attached to.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.running() {
		return 0
	}
	return s.proc.pid()
}

// Stop ends the server for good: it asks, after 5 s it insists, and then removes the directory if
// that was temporary. It returns when the process is gone. Further calls do nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.external != nil {
		return nil
	}
	s.stopped = true
	var err error
	if s.proc.running() {
		err = s.proc.terminate(stopGrace)
	}
	return errors.Join(err, s.removeDir())
}

// Kill ends the server the way a crash does and returns when the process is gone. The directory
// stays, so that Restart finds what had been persisted. Killing a dead server does nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.external != nil {
		return ErrExternal
	}
	if !s.proc.running() {
		return nil
	}
	return s.proc.kill()
}

// Restart starts the server again on the same port and in the same directory, after ending it in
// order if it still runs. Data comes back with Config.AppendOnly only. The context bounds the call
// (30 s without a deadline). It waits while another process holds the port, because a client that
// dials about may have got it as its own for a moment.
//
// It returns ErrStopped after Stop.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.external != nil {
		return ErrExternal
	}
	if s.stopped {
		return ErrStopped
	}
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	if s.proc.running() {
		if err := s.proc.terminate(stopGrace); err != nil {
			return err
		}
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := s.run(ctx)
		if !errors.Is(err, errPortTaken) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

// Freeze stops the process without ending it, as a long pause of the machine does: connections stay
// open and nothing is answered until Thaw. On Linux it returns once the process has stopped.
func (s *Server) Freeze() error { return s.signal("freezing", freeze) }

// Thaw lets a frozen server run on.
func (s *Server) Thaw() error { return s.signal("thawing", thaw) }

func (s *Server) signal(what string, send func(*os.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.external != nil {
		return ErrExternal
	}
	if !s.proc.running() {
		return ErrNotRunning
	}
	if err := send(s.proc.cmd.Process); err != nil {
		return fmt.Errorf("redisproc: %s: %w", what, err)
	}
	return nil
}

// CPU returns the user and system time that the present process has used since it started. On Linux
// it comes from the kernel, in steps of 10 ms; elsewhere, and for an attached server, from INFO.
func (s *Server) CPU() (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.external == nil {
		if !s.proc.running() {
			return 0, ErrNotRunning
		}
		if used, err := processCPU(s.proc.pid()); err == nil {
			return used, nil
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	probe := s.newProbe()
	defer probe.close()
	return probe.infoCPU(ctx)
}

func (s *Server) newProbe() probe {
	if s.external != nil {
		opts := *s.external
		return newProbe(&opts)
	}
	return newProbe(&redis.Options{Addr: s.addr})
}

// failedStart says why a process did not come up, in its own words where it left any.
func (s *Server) failedStart(p *process, cause error) error {
	tail := p.logTail()
	if strings.Contains(tail, "Address already in use") {
		cause = errPortTaken
	}
	if cause == nil {
		cause = ErrNotRunning // it ended with status 0, which is not what was asked
	}
	return fmt.Errorf("redisproc: redis-server on port %d did not start: %w; its last words:\n%s", s.port, cause, tail)
}
