package redisproc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// startLimit bounds a start whose context has no deadline.
	startLimit = 30 * time.Second

	// stopGrace is how long a server may take to end by itself. It only has to flush its
	// append-only file, but a script that never ends would keep it for ever.
	stopGrace = 5 * time.Second

	// portTries is how often a lost port is replaced. Losing one is rare, losing several in a row
	// means something else is wrong.
	portTries = 5

	// pollPause lies between two looks at a server that is starting.
	pollPause = 3 * time.Millisecond

	logName = "redis-server.log"
)

// Server is a redis-server. Its methods may be called by several goroutines.
type Server struct {
	// Written by Start or Attach, read only afterwards.
	cfg      Config
	binary   string
	version  string
	dir      string
	tempDir  bool // dir is ours to remove
	port     int
	addr     string
	url      string
	external *redis.Options // set when the server is only attached to

	// mu serialises everything that changes the process, and is held while that waits.
	mu      sync.Mutex
	proc    *process // the present or the last run
	stopped bool
}

// Start runs a server and returns when it answers PING; a server that is still loading its data
// does not count. The context bounds the start alone (30 s without a deadline): its end later on
// does not stop the server. The error of a failed start holds the server's last log lines.
//
// It returns ErrNotInstalled when there is no redis-server on PATH.
func Start(ctx context.Context, cfg Config) (*Server, error) { return start(ctx, cfg, freePort) }

// start is Start with the choice of a free port as a parameter.
func start(ctx context.Context, cfg Config, pick func(context.Context) (int, error)) (*Server, error) {
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	version, err := binaryVersion(ctx, binary)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, binary: binary, version: version}
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		port := cfg.Port
		if port == 0 {
			if port, err = pick(ctx); err != nil {
				break
			}
		}
		s.setPort(port)
		if err = s.run(ctx); err == nil || cfg.Port != 0 || try == portTries || !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.removeDir())
	}
	return s, nil
}

// Installed returns nil when Start would find a redis-server, else ErrNotInstalled.
func Installed() error {
	_, err := findBinary()
	return err
}

func findBinary() (string, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return binary, nil
}

// Attach returns a handle on a server that somebody else runs. Its address, version and CPU time
// can be read; Stop does nothing, and Kill, Restart, Freeze and Thaw return ErrExternal.
func Attach(ctx context.Context, url string) (*Server, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		// Not %w: the parser's text repeats the URL, which may hold a password.
		return nil, errors.New("redisproc: the Redis URL cannot be parsed")
	}
	s := &Server{addr: opts.Addr, url: url, external: opts}
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	probe := s.newProbe()
	defer probe.close()
	info, err := probe.info(ctx, "server")
	if err != nil {
		return nil, err
	}
	s.version = info["redis_version"]
	return s, nil
}

func withStartLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, startLimit)
}

func (s *Server) makeDir() (err error) {
	if s.cfg.Dir == "" {
		s.tempDir = true
		s.dir, err = os.MkdirTemp("", "babelpool-redis-")
	} else if s.dir, err = filepath.Abs(s.cfg.Dir); err == nil {
		err = os.MkdirAll(s.dir, 0o750)
	}
	if err == nil && s.cfg.sentinel != "" {
		err = os.WriteFile(filepath.Join(s.dir, sentinelFile), []byte(s.cfg.sentinel), 0o600)
	}
	if err != nil {
		return fmt.Errorf("redisproc: data directory: %w", err)
	}
	return nil
}

func (s *Server) removeDir() error {
	if !s.tempDir {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("redisproc: removing the data directory: %w", err)
	}
	return nil
}

func (s *Server) setPort(port int) {
	s.port = port
	s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s.url = "redis://" + s.addr
}

// run starts a process on the server's port and waits until it answers. On error no process is
// left.
func (s *Server) run(ctx context.Context) error {
	p, err := launch(s.binary, s.cfg.arguments(s.port, s.version), s.dir, filepath.Join(s.dir, logName))
	if err != nil {
		return err
	}
	ticker := time.NewTicker(pollPause)
	defer ticker.Stop()
	for {
		select {
		case <-p.exited:
			return s.failedStart(p, p.keeper.Wait())
		case <-ctx.Done():
			return errors.Join(s.failedStart(p, context.Cause(ctx)), p.kill())
		case <-ticker.C:
			if answers(ctx, s.addr, p) {
				s.proc = p
				return nil
			}
		}
	}
}
