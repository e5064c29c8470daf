//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

// realBackend is a real server of a test's own.
func realBackend(t *testing.T) backend {
	t.Helper()
	server := testredis.Server(t, redisproc.Config{})
	return backend{server.URL(), testredis.Client(t, server.URL())}
}

// reconciled looks at what must hold of every run with processes.
func reconciled(t *testing.T, o outcome, processes int) {
	t.Helper()
	r := o.report
	if o.code != exitBalanced || !r.Reconciled || r.Lost != 0 || len(r.Processes) != processes || r.Config.Processes != processes {
		t.Fatalf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
	}
	var acked int64
	var used float64 // by all processes, in microseconds
	for i, p := range r.Processes {
		acked += p.Acked
		if p.Acked > 0 && (p.ClientCPU == nil || *p.ClientCPU <= 0) {
			t.Errorf("process %d: no CPU\n%s", i+1, o.stdout)
		}
		if p.ClientCPU != nil {
			used += *p.ClientCPU * float64(p.Acked)
		}
	}
	expect(t, "acked by all processes", acked, r.Acked)
	if r.Acked > 0 && (r.ClientCPU == nil || *r.ClientCPU*float64(r.Acked) < 0.99*used) {
		t.Errorf("the client CPU is not that of all processes\n%s", o.stdout)
	}
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags string
		check func(t *testing.T, r report)
	}{
		"legacy": {"-messages 3000 -handler-time 1ms", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 3000)
			for i, p := range r.Processes {
				if p.Acked == 0 {
					t.Errorf("process %d had nothing to do", i+1)
				}
			}
		}},
		"zset": {"-messages 3000 -layout zset", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 3000)
			expect(t, "redelivered", r.Redelivered, 0)
		}},
		// Which run of a message fails is the same as with one process, wherever it takes place.
		"failing, delayed": {"-messages 300 -layout zset -fail 0.1 -backoff 1s", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 300)
			expect(t, "redelivered", r.Redelivered, injected(300, 0.1))
		}},
		"failing, requeued": {"-messages 300 -fail 0.3 -legacy-retry requeue -max-attempts 2", func(t *testing.T, r report) {
			expect(t, "dead-lettered", r.DeadLettered, hopeless(300, 0.3, 2))
			expect(t, "acked", r.Acked, 300-hopeless(300, 0.3, 2))
		}},
		"prefilled": {"-messages 3000 -prefill", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 3000)
			if r.LatencyMS != nil {
				t.Error("latency beside -prefill")
			}
		}},
		"more messages than one leaf of the books": {"-messages 70000 -payload 1", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 70000)
		}},
		// The processes' clocks must agree: latencies are those of an idle queue, neither 0 nor anything large.
		"latency": {"-duration 1s -rate 300 -handler-time exponential:500us", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 300)
			if l := r.LatencyMS; l == nil || l.P50 <= 0 || l.P50 > 1000 || l.Max > 10_000 {
				t.Errorf("latency %+v", l)
			}
			if r.Config.HandlerTime != "exponential:500us" || r.MissedSends == nil {
				t.Errorf("%+v", r)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := realBackend(t)
			o := runCommand(t.Context(), t, tt.flags+" -processes 3 -redis "+b.url)
			reconciled(t, o, 3)
			if (o.report.LatencyMS == nil) != o.report.Config.Prefill {
				t.Errorf("latency %+v", o.report.LatencyMS)
			}
			tt.check(t, o.report)
			if !strings.Contains(o.stderr, "3 processes, each with 64 workers") || strings.Contains(o.stderr, "loadtest: ") &&
				!strings.Contains(o.stderr, "-payload") {
				t.Errorf("stderr:\n%s", o.stderr)
			}
			if keys := b.client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
				t.Errorf("keys after the run: %q", keys)
			}
		})
	}
}

func TestAnInterruptDrainsTheProcesses(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "-layout zset"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			b := realBackend(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var o outcome
			var g errgroup.Group
			g.Go(func() error {
				o = runCommand(ctx, t, "-processes 2 -messages 20000 -concurrency 2 -prefetch 8 -handler-time 20ms -redis "+b.url+" "+flags)
				return nil
			})
			b.someSettled(t, 20)
			interrupt()
			_ = g.Wait() // never fails
			reconciled(t, o, 2)
			r := o.report
			if r.LeftReady == 0 || r.LeftInFlight != 0 || r.Acked == 0 || r.Acked+r.LeftReady != r.Published {
				t.Errorf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
			}
		})
	}
}

// someSettled waits until a run has a backlog and has started to work it off.
func (b backend) someSettled(t *testing.T, atLeast int64) {
	t.Helper()
	most := int64(0)
	testredis.Eventually(t, 20*time.Second, func() bool {
		n := b.client.LLen(t.Context(), b.readyKey(t, 100)).Val()
		most = max(most, n)
		return n <= most-atLeast
	}, "nothing is consumed")
}

func TestASweepWithProcesses(t *testing.T) {
	t.Parallel()
	b := realBackend(t)
	o, r := runSweepCommand(t.Context(), t, "-processes 2 -messages 500 -concurrency 4,8 -redis "+b.url)
	if o.code != exitBalanced || len(r.Sweep) != 2 || r.Config.Processes != 2 || r.Sweep[0].ClientCPU == nil || r.Sweep[0].RedisCPU == nil {
		t.Errorf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
	}
}

// A call for every message costs Redis far more than one for hundreds, so its CPU shows that the batch reaches the
// pools, in whatever process.
func TestASweepOfBatches(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]string{
		"legacy": "", "zset": "-layout zset", "processes": "-processes 2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := realBackend(t)
			html := filepath.Join(t.TempDir(), "sweep.html")
			o, r := runSweepCommand(t.Context(), t, "-messages 3000 -batch 1,0 -html "+html+" -redis "+b.url+" "+flags)
			if o.code != exitBalanced || !cmp.Equal(r.Config.Batch, []int{1, 0}) || len(r.Sweep) != 2 || r.Sweep[0].Batch != 1 ||
				r.Sweep[1].Batch != 0 {
				t.Fatalf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
			}
			if single, many := r.Sweep[0].RedisCPU, r.Sweep[1].RedisCPU; single == nil || many == nil || *single < 2**many {
				t.Errorf("batches of one cost Redis no more than large ones\n%s", o.stderr)
			}
			for _, row := range []string{`\n +64 +256 +1 +[0-9]`, `\n +64 +256 +default +[0-9]`} {
				if !regexp.MustCompile(row).MatchString(o.stderr) {
					t.Errorf("no row %q in the table:\n%s", row, o.stderr)
				}
			}
			page, err := os.ReadFile(html)
			if err != nil || !bytes.Contains(page, []byte("Batch size 1<")) || !bytes.Contains(page, []byte("Default batch size<")) {
				t.Errorf("%v, page of %d bytes", err, len(page))
			}
		})
	}
}

func TestProcessesNeedARedis(t *testing.T) { // changes the environment, so not parallel
	t.Setenv("PATH", t.TempDir())
	t.Setenv(envRedis, "")
	o := runCommand(t.Context(), t, "-messages 50 -processes 2")
	if o.code != exitFailed || o.stdout != "" || !strings.Contains(o.stderr, "-processes: 2 processes need a real Redis") {
		t.Errorf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
	}
}

// newTestMember is a consumer process of a queue that nobody writes.
func newTestMember(t *testing.T, change func(*order)) *member {
	t.Helper()
	b := realBackend(t)
	m, err := newSharedMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	o := order{
		Number: 1, Of: 1, Address: b.url, Queue: "quiet", RunID: "0123abcd", Concurrency: 1, Prefetch: 1, HandlerTime: "0s",
		RetryAfter: 2 * time.Second,
	}
	if change != nil {
		change(&o)
	}
	return newMember(o, m.file, io.Discard)
}

// The end of its stdin ends a process at once, working or not, where no kernel does it.
func TestAProcessEndsWithItsStdin(t *testing.T) {
	t.Parallel()
	for name, working := range map[string]bool{"waiting": false, "working": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newTestMember(t, nil)
			err := m.run(t.Context(), func() {
				if working {
					m.tell(command{Go: true})
				}
				m.hangUp()
			})
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(err.Error(), "consumer process 1 (pid ") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestAProcessStopsBeforeItStarts(t *testing.T) {
	t.Parallel()
	m := newTestMember(t, nil)
	if err := m.run(t.Context(), func() { m.tell(command{Stop: true}) }); err != nil {
		t.Error(err)
	}
}

func TestAProcessTellsWhyItsPoolRefuses(t *testing.T) {
	t.Parallel()
	m := newTestMember(t, func(o *order) { o.Prefetch = -1 })
	err := m.run(t.Context(), func() { m.tell(command{Go: true}) })
	if err == nil || !strings.Contains(err.Error(), "consumer process 1: ") || !strings.Contains(err.Error(), "Prefetch") {
		t.Errorf("error %v", err)
	}
}

func TestAProcessWithABadOrderDies(t *testing.T) {
	t.Parallel()
	m := newTestMember(t, func(o *order) { o.HandlerTime = "soon" })
	ready := false
	err := m.run(t.Context(), func() { ready = true })
	if err == nil || !strings.Contains(err.Error(), "died: exit status 1") || ready {
		t.Errorf("error %v, ready %v", err, ready)
	}
}
