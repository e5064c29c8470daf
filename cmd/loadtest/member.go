package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// member is one process of a fleet, seen from the one that started it.
//
// It is this program again. Down its stdin go its order and then commands, up its stdout comes news, both as
// gobs; the order is not in its arguments, because an address may hold a password, which arguments show to
// everybody.
type member struct {
	order  order
	shared *os.File // the books
	stderr io.Writer
	cmd    *exec.Cmd

	mu    sync.Mutex
	stdin io.WriteCloser
	enc   *gob.Encoder // of stdin
	news  news         // the latest
	hist  []byte       // the latest of its news
}

func newMember(o order, shared *os.File, stderr io.Writer) *member {
	return &member{order: o, shared: shared, stderr: stderr}
}

// run starts the process and follows it to its end; when ctx ends, it is killed. It calls ready when the
// process is prepared to consume. The error is the process's own, or tells how it died.
func (m *member) run(ctx context.Context, ready func()) error {
	// The kernel kills the process when the thread that started it ends (see dieWithParent), so this
	// goroutine keeps its thread until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stdout, err := m.start(ctx)
	if err != nil {
		return fmt.Errorf("consumer process %d could not be started: %w", m.order.Number, err)
	}
	told := m.listen(stdout, ready)
	m.hangUp()
	err = m.cmd.Wait()
	last := m.latest()
	switch {
	case last.Final && last.Err != "":
		return fmt.Errorf("consumer process %d: %s", m.order.Number, last.Err)
	case last.Final && err == nil:
		return nil
	case err == nil:
		err = told // it ended as if all were well, and did not say so
	}
	return fmt.Errorf("consumer process %d (pid %d) died: %w; what it held is left to its lease",
		m.order.Number, m.cmd.Process.Pid, err)
}

// start starts the process and gives it its order.
func (m *member) start(ctx context.Context) (stdout io.ReadCloser, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m.cmd = exec.CommandContext(ctx, program, "consumer", strconv.Itoa(m.order.Number)) //nolint:gosec // this program
	m.cmd.Env = append(os.Environ(), envMember+"="+strconv.Itoa(m.order.Number))
	m.cmd.Stderr, m.cmd.ExtraFiles = m.stderr, []*os.File{m.shared}
	dieWithParent(m.cmd)
	if stdout, err = m.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	stdin, err := m.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stdin, m.enc = stdin, gob.NewEncoder(stdin)
	_ = m.enc.Encode(m.order) // when that fails, the process has died, and how is about to be known
	return stdout, nil
}

// listen takes the news until there is no more.
func (m *member) listen(stdout io.Reader, ready func()) error {
	dec := gob.NewDecoder(stdout)
	for {
		var n news
		if err := dec.Decode(&n); err != nil {
			return err
		}
		m.mu.Lock()
		m.news = n
		if n.Histogram != nil {
			m.hist = n.Histogram
		}
		m.mu.Unlock()
		if n.Ready {
			ready()
		}
		if n.Final {
			return nil
		}
	}
}

// tell sends a command. A process that cannot be told any more is about to be missed by run.
func (m *member) tell(c command) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.enc != nil {
		_ = m.enc.Encode(c)
	}
}

// hangUp closes stdin: the sign that the process may go, or must.
func (m *member) hangUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.stdin.Close()
	m.enc = nil
}

// latest is the last news.
func (m *member) latest() news {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.news
}

// addTo adds the latencies that the process took.
func (m *member) addTo(l *latencies) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hist == nil {
		return nil
	}
	h, err := hdrhistogram.Decode(m.hist)
	if err != nil {
		return fmt.Errorf("latencies of consumer process %d: %w", m.order.Number, err)
	}
	if l.add(h) > 0 {
		return errors.New("latencies of another range") // cannot be: it is this program
	}
	return nil
}
