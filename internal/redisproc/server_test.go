package redisproc_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

const patience = 5 * time.Second

func ping(t *testing.T, s *redisproc.Server) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	return testredis.Client(t, s.Addr()).Ping(ctx).Err()
}

func TestServerLivesFromStartToStop(t *testing.T) {
	t.Parallel()
	s := testredis.Server(t, redisproc.Config{})
	if err := ping(t, s); err != nil {
		t.Fatal(err)
	}
	if s.URL() != "redis://"+s.Addr() || s.Version() == "" || s.PID() == 0 {
		t.Errorf("url %q, version %q, pid %d", s.URL(), s.Version(), s.PID())
	}
	if _, err := os.Stat(s.Dir()); err != nil {
		t.Error(err)
	}
	for range 2 { // the second does nothing
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if err := ping(t, s); err == nil {
		t.Error("it answers after Stop")
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory is still there: %v", err)
	}
	if pid := s.PID(); pid != 0 {
		t.Errorf("pid %d after Stop", pid)
	}
	if err := s.Restart(t.Context()); !errors.Is(err, redisproc.ErrStopped) {
		t.Errorf("restart after Stop: %v", err)
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := testredis.Server(t, redisproc.Config{
		Dir: dir, AppendOnly: true, AppendFsync: "always",
		MaxMemory: "64mb", MaxMemoryPolicy: "allkeys-lru", Args: []string{"--hz", "50"},
	})
	client := testredis.Client(t, s.Addr())
	for name, want := range map[string]string{
		"bind": "127.0.0.1", "save": "", "dir": dir, "appendonly": "yes", "appendfsync": "always",
		"maxmemory": "67108864", "maxmemory-policy": "allkeys-lru", "hz": "50",
	} {
		got, err := client.ConfigGet(t.Context(), name).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if err := client.Do(t.Context(), "DEBUG", "SLEEP", "0").Err(); err != nil {
		t.Errorf("DEBUG: %v", err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a directory that was given must stay: %v", err)
	}
}

func TestServerOutlivesItsStartContext(t *testing.T) {
	t.Parallel()
	testredis.Require(t)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := redisproc.Start(ctx, redisproc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop() //nolint:errcheck // checked elsewhere
	pid := s.PID()
	cancel()
	if err := ping(t, s); err != nil || s.PID() != pid {
		t.Errorf("after the context's end: %v, pid %d, was %d", err, s.PID(), pid)
	}
}

func TestRestartLoadsTheAppendOnlyFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  redisproc.Config
		want string
	}{
		"append only":    {redisproc.Config{AppendOnly: true}, "kept"},
		"no persistence": {redisproc.Config{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testredis.Server(t, tc.cfg)
			client := testredis.Client(t, s.Addr())
			if err := client.Set(t.Context(), "k", "kept", 0).Err(); err != nil {
				t.Fatal(err)
			}
			addr, pid := s.Addr(), s.PID()
			for range 2 { // the second does nothing
				if err := s.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if err := ping(t, s); err == nil || s.PID() != 0 {
				t.Fatalf("after Kill: %v, pid %d", err, s.PID())
			}
			if _, err := s.CPU(); !errors.Is(err, redisproc.ErrNotRunning) {
				t.Errorf("CPU of a dead server: %v", err)
			}
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s.Addr() != addr || s.PID() == pid {
				t.Errorf("address %s, was %s; pid %d, was %d", s.Addr(), addr, s.PID(), pid)
			}
			got, err := testredis.Client(t, addr).Get(t.Context(), "k").Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("after the restart: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRestartOfALiveServer(t *testing.T) {
	t.Parallel()
	s := testredis.Server(t, redisproc.Config{})
	pid := s.PID()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, s); err != nil || s.PID() == pid {
		t.Errorf("%v, pid %d, was %d", err, s.PID(), pid)
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	s := testredis.Server(t, redisproc.Config{})
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, s); err == nil {
		t.Error("a frozen server answered")
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, s); err != nil {
		t.Error(err)
	}
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("stopping a frozen server took %v: it was not asked but killed", took)
	}
	if err := s.Freeze(); !errors.Is(err, redisproc.ErrNotRunning) {
		t.Errorf("freezing a stopped server: %v", err)
	}
}

func TestCPUGrowsWithWork(t *testing.T) {
	t.Parallel()
	s := testredis.Server(t, redisproc.Config{})
	before, err := s.CPU()
	if err != nil {
		t.Fatal(err)
	}
	client := testredis.Client(t, s.Addr())
	const busy = "local n = 0 for i = 1, 3e7 do n = n + i end return n"
	if err := client.Eval(t.Context(), busy, nil).Err(); err != nil {
		t.Fatal(err)
	}
	after, err := s.CPU()
	if err != nil {
		t.Fatal(err)
	}
	// The other source knows the same process, and a little later.
	external, err := redisproc.Attach(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	reported, err := external.CPU()
	if err != nil {
		t.Fatal(err)
	}
	const resolution = 20 * time.Millisecond // two counters, each cut off at 10 ms
	if after-before < resolution || reported < after-resolution || reported > after+time.Second {
		t.Errorf("before %v, after %v, by INFO %v", before, after, reported)
	}
}

func TestFailedStartQuotesTheLog(t *testing.T) {
	t.Parallel()
	testredis.Require(t)
	s, err := redisproc.Start(t.Context(), redisproc.Config{Args: []string{"--no-such-option", "1"}})
	if err == nil {
		_ = s.Stop()
		t.Fatal("started")
	}
	if !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("the error does not say why: %v", err)
	}
}

func portOf(t *testing.T, s *redisproc.Server) int {
	t.Helper()
	_, text, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestStartOnATakenPort(t *testing.T) {
	t.Parallel()
	// The holder of the port answers PONG, so that only a look at who answers tells the difference.
	holder := testredis.Server(t, redisproc.Config{})
	s, err := redisproc.Start(t.Context(), redisproc.Config{Port: portOf(t, holder)})
	if err == nil {
		_ = s.Stop()
		t.Fatal("two servers on one port")
	}
	if !strings.Contains(err.Error(), "taken") {
		t.Errorf("the error does not say why: %v", err)
	}
}

func TestStartPicksAgainWhenThePortIsLost(t *testing.T) {
	t.Parallel()
	holder := testredis.Server(t, redisproc.Config{})
	other := testredis.Server(t, redisproc.Config{})
	free := portOf(t, other)
	if err := other.Stop(); err != nil {
		t.Fatal(err)
	}
	picks := 0
	s, err := redisproc.StartPicking(t.Context(), redisproc.Config{}, func(context.Context) (int, error) {
		picks++
		if picks < 3 {
			return portOf(t, holder), nil
		}
		return free, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop() //nolint:errcheck // checked elsewhere
	if picks != 3 || portOf(t, s) != free {
		t.Errorf("%d picks, address %s", picks, s.Addr())
	}
	if err := ping(t, s); err != nil {
		t.Error(err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	testredis.Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	// A server that listens elsewhere never answers where it is looked for.
	s, err := redisproc.Start(ctx, redisproc.Config{Args: []string{"--port", "0", "--unixsocket", "elsewhere"}})
	if err == nil {
		_ = s.Stop()
		t.Fatal("started")
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestServerWithPassword(t *testing.T) {
	t.Parallel()
	s := testredis.Server(t, redisproc.Config{Args: []string{"--requirepass", "secret"}})
	if err := ping(t, s); err == nil {
		t.Error("it answers without the password")
	}
	url := "redis://:secret@" + s.Addr()
	external, err := redisproc.Attach(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if external.Addr() != s.Addr() || external.URL() != url || external.Version() != s.Version() {
		t.Errorf("attached to %q, %q, version %q", external.Addr(), external.URL(), external.Version())
	}
}

func TestAttachedServerIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := testredis.Server(t, redisproc.Config{})
	external, err := redisproc.Attach(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]error{
		"Kill": external.Kill(), "Freeze": external.Freeze(), "Thaw": external.Thaw(),
		"Restart": external.Restart(t.Context()),
	} {
		if !errors.Is(got, redisproc.ErrExternal) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if err := external.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := ping(t, s); err != nil {
		t.Errorf("the server is gone: %v", err)
	}
}

func TestAttachKeepsThePasswordToItself(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://:hunter2@127.0.0.1:1", "redis://:hunter2@[bad", "http://:hunter2@x"} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := redisproc.Attach(ctx, url)
		cancel()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v", err)
		}
	}
}

// TestNotInstalled changes the environment and so runs alone.
func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := redisproc.Start(t.Context(), redisproc.Config{}); !errors.Is(err, redisproc.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
	if err := redisproc.Installed(); !errors.Is(err, redisproc.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
}
