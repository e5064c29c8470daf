package testredis

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/redisproc"
)

// envMode makes this test binary run one of the runs below in a child of its own, because what is
// tested ends the process or looks at all its goroutines.
const envMode = "TESTREDIS_TEST_MODE"

type fakeRun func() int

func (f fakeRun) Run() int { return f() }

func TestMain(m *testing.M) {
	switch os.Getenv(envMode) {
	case "":
		Main(m)
	case "clean":
		os.Exit(run(fakeRun(func() int { return 0 })))
	case "leak":
		os.Exit(run(fakeRun(func() int { go func() { select {} }(); return 0 })))
	case "failed":
		os.Exit(run(fakeRun(func() int { go func() { select {} }(); return 7 })))
	}
}

func TestMainLooksForLeaks(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct {
		code int
		text string
	}{
		"clean":  {0, ""},
		"leak":   {1, "goroutines left"},
		"failed": {7, ""},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), envMode+"="+mode)
			out, err := child.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := child.ProcessState.ExitCode(); code != want.code {
				t.Errorf("exit code %d, want %d", code, want.code)
			}
			if !strings.Contains(string(out), want.text) || (want.text == "" && len(out) > 0) {
				t.Errorf("output %q, want %q", out, want.text)
			}
		})
	}
}

func TestEachGivesTwoWorkingBackends(t *testing.T) {
	t.Parallel()
	var onMini, onServer atomic.Int32
	t.Run("each", func(t *testing.T) {
		Each(t, func(t *testing.T, b Backend) {
			if err := b.Client.Set(t.Context(), b.Prefix+"k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if got, err := Client(t, b.URL).Get(t.Context(), b.Prefix+"k").Result(); err != nil || got != "v" {
				t.Errorf("through the URL: %q, %v", got, err)
			}
			if b.Real != (b.Name == "redis") || b.Real != (b.Server != nil) || b.Real == (b.Mini != nil) {
				t.Errorf("backend %+v", b)
			}
			if b.Real {
				onServer.Add(1)
			} else {
				onMini.Add(1)
			}
		})
	})
	Require(t)
	if onMini.Load() != 1 || onServer.Load() != 1 {
		t.Errorf("ran %d times on the imitation, %d times on the server", onMini.Load(), onServer.Load())
	}
}

func TestViaKeepsAllButTheAddress(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"redis://127.0.0.1:6379":           "redis://127.0.0.1:1",
		"redis://user:p%40ss@host:6379/3":  "redis://user:p%40ss@127.0.0.1:1/3",
		"redis://:pw@host?protocol=2&db=1": "redis://:pw@127.0.0.1:1?protocol=2&db=1",
	} {
		if got := (Backend{URL: given}).Via("127.0.0.1:1"); got != want {
			t.Errorf("%s became %s", given, got)
		}
	}
}

func TestEachRemovesItsKeysOnly(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	mine := Client(t, server.URL())
	other := Prefix(t) + "other"
	if err := mine.Set(t.Context(), other, "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	prefixes := make(chan string, 1)
	t.Run("each", func(t *testing.T) {
		Each(t, func(t *testing.T, b Backend) {
			if !b.Real {
				return
			}
			prefixes <- b.Prefix
			for i := range 1200 { // more than one call's worth
				if err := b.Client.Set(t.Context(), b.Prefix+string(rune('一'+i)), "v", 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	left, err := mine.Keys(t.Context(), <-prefixes+"*").Result()
	if err != nil || len(left) > 0 {
		t.Errorf("%d keys left, %v", len(left), err)
	}
	if n, err := mine.Del(t.Context(), other).Result(); err != nil || n != 1 {
		t.Errorf("another test's key: %d, %v", n, err)
	}
}

func TestSharedIsOneServerAndServerIsAnother(t *testing.T) {
	t.Parallel()
	if a, b := Shared(t), Shared(t); a != b {
		t.Error("two shared servers")
	}
	if private := Server(t, redisproc.Config{}); private.Addr() == Shared(t).Addr() {
		t.Error("the private server is the shared one")
	}
}

func TestServerStopsWithItsTest(t *testing.T) {
	t.Parallel()
	var s *redisproc.Server
	t.Run("owner", func(t *testing.T) { s = Server(t, redisproc.Config{}) })
	Require(t)
	if pid := s.PID(); pid != 0 {
		t.Errorf("process %d still runs", pid)
	}
}

func TestMiniHasTheRealClock(t *testing.T) {
	t.Parallel()
	client := Client(t, Mini(t).Addr())
	now, err := client.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if off := time.Since(now).Abs(); off > time.Minute {
		t.Errorf("its clock is %v off", off)
	}
}

func TestPrefixIsSafeAndUnique(t *testing.T) {
	t.Parallel()
	safe := regexp.MustCompile(`^t:[-a-zA-Z0-9_.]{1,40}-[0-9a-f]{8}:$`)
	seen := map[string]bool{}
	check := func(t *testing.T) {
		p := Prefix(t)
		if !safe.MatchString(p) || seen[p] {
			t.Errorf("prefix %q", p)
		}
		seen[p] = true
	}
	check(t)
	check(t)
	for _, name := range []string{"{tag} *?[x] ü", strings.Repeat("long", 30)} {
		t.Run(name, check)
	}
}

// recorder stands in for a test, to see how a helper ends it.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Skipf(string, ...any)  { r.skipped = true; runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; runtime.Goexit() }

func record(fn func(t testing.TB)) *recorder {
	r := &recorder{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fn(r)
	}()
	<-ended
	return r
}

// TestWithoutRedisServer changes the environment and so runs alone.
func TestWithoutRedisServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, helper := range map[string]func(t testing.TB){
		"Server":  func(t testing.TB) { Server(t, redisproc.Config{}) },
		"Require": Require,
	} {
		for require, wantSkip := range map[string]bool{"": true, "1": false} {
			t.Setenv(envRequire, require)
			if r := record(helper); r.skipped != wantSkip || r.failed == wantSkip {
				t.Errorf("%s with %s=%q: skipped %v, failed %v", name, envRequire, require, r.skipped, r.failed)
			}
		}
	}
}

func TestAFailureToStartIsNoReasonToSkip(t *testing.T) {
	t.Parallel()
	if r := record(func(t testing.TB) { unavailable(t, context.DeadlineExceeded) }); !r.failed || r.skipped {
		t.Errorf("skipped %v, failed %v", r.skipped, r.failed)
	}
}

func TestEventually(t *testing.T) {
	t.Parallel()
	looks := 0
	Eventually(t, time.Minute, func() bool { looks++; return looks == 3 }, "the third look")
	if looks != 3 {
		t.Errorf("looked %d times", looks)
	}
	if r := record(func(t testing.TB) {
		Eventually(t, 10*time.Millisecond, func() bool { return false }, "never %d", 1)
	}); !r.failed {
		t.Error("it did not give up")
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	bringing, closed := make(chan int, 1), make(chan int)
	bringing <- 7
	close(closed)
	for ch, want := range map[<-chan int]int{bringing: 7, closed: 0} {
		if got := Await(t, ch, time.Minute, "a number"); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	if r := record(func(t testing.TB) { Await(t, bringing, 10*time.Millisecond, "another number") }); !r.failed {
		t.Error("it did not give up")
	}
}
