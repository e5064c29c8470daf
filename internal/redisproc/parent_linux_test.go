package redisproc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

func TestServerDiesWithAKilledParent(t *testing.T) {
	t.Parallel()
	testredis.Require(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), envParent+"="+t.TempDir())
	if _, err := parent.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr := strings.TrimSpace(line)
	if err != nil || strings.HasPrefix(addr, "error") {
		t.Errorf("the parent says %q, %v", line, err)
	} else if !accepts(addr) {
		t.Errorf("no server at %s", addr)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // always "signal: killed"
	testredis.Eventually(t, patience, func() bool { return !accepts(addr) }, "the server at %s is gone", addr)
}

func accepts(addr string) bool {
	conn, err := net.DialTimeout("tcp4", addr, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// TestTerminalInterruptDoesNotReachTheServer: an interrupt goes to a whole process group, and a load
// test that drains on it still needs its server.
func TestTerminalInterruptDoesNotReachTheServer(t *testing.T) {
	t.Parallel()
	s := testredis.Server(t, redisproc.Config{})
	group, err := syscall.Getpgid(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	if group != s.PID() {
		t.Errorf("process group %d, want its own, %d", group, s.PID())
	}
}

// TestServerOutlivesTheThreadThatAskedForIt is for the trap in the kernel's promise: it is kept when
// the *thread* that started the child ends, and Go ends a thread whose locked goroutine returns.
func TestServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	testredis.Require(t)
	var s *redisproc.Server
	var err error
	thread := onDyingThread(func() { s, err = redisproc.Start(context.Background(), redisproc.Config{}) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop() //nolint:errcheck // checked elsewhere
	testredis.Eventually(t, patience, func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		return errors.Is(err, os.ErrNotExist)
	}, "thread %d is gone", thread)
	if err := ping(t, s); err != nil {
		t.Errorf("the server went with the thread: %v", err)
	}
}

// onDyingThread runs fn on a thread that ends afterwards, and returns the thread's id.
func onDyingThread(fn func()) int {
	id := make(chan int, 1)
	go func() {
		runtime.LockOSThread() // and never unlock
		if syscall.Gettid() == os.Getpid() {
			// The main thread is the only one that Go never ends. It is held here meanwhile, so the
			// next goroutine gets another one.
			id <- onDyingThread(fn)
			return
		}
		fn()
		id <- syscall.Gettid()
	}()
	return <-id
}
