package faulttest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// run is a pool at work.
type run struct {
	*pool.Pool
	t      *testing.T
	logs   *logBook
	label  string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // valid when ended is closed
}

var runs atomic.Int64

// start runs a pool on the rig's queue. What the config leaves open is filled in: client, queue, layout,
// handler, and a lease of 2 s, the shortest. The pool ends with the test at the latest.
func (r *rig) start(cfg pool.Config) *run {
	r.t.Helper()
	if cfg.Client == nil {
		cfg.Client = r.client(r.server.URL())
	}
	if cfg.Queues == nil {
		cfg.Queues = []pool.Queue{{Name: r.queue}}
	}
	if cfg.Handler == nil {
		cfg.Handler = r.handler(nil)
	}
	if cfg.RetryAfter == 0 {
		cfg.RetryAfter = 2 * time.Second
	}
	cfg.Layout, cfg.KeyPrefix = r.layout, r.prefix
	p := &run{t: r.t, logs: &logBook{}, label: strconv.FormatInt(runs.Add(1), 10), ended: make(chan struct{})}
	cfg.Logger = slog.New(p.logs)
	p.Pool = pool.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.ended)
		// Goroutines inherit the label, so that a pool's can be told from those of the tests beside it.
		pprof.Do(ctx, pprof.Labels("pool", p.label), func(ctx context.Context) { p.err = p.Run(ctx) })
	}()
	r.t.Cleanup(func() {
		cancel()
		testredis.Await(r.t, p.ended, patience, "the pool's end")
		if r.t.Failed() {
			r.t.Logf("log of the pool:\n%s\nstats: %+v", p.logs, p.Stats())
		}
	})
	return p
}

// client makes what a worker would use.
func (r *rig) client(url string) *redis.Client {
	r.t.Helper()
	client, err := pool.OpenRedis(url)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := client.Close(); err != nil {
			r.t.Errorf("closing the pool's client: %v", err)
		}
	})
	return client
}

// stop ends the pool and returns what Run returned and how long it took.
func (p *run) stop() (time.Duration, error) {
	p.t.Helper()
	begun := time.Now()
	p.cancel()
	testredis.Await(p.t, p.ended, patience, "the pool's end")
	return time.Since(begun), p.err
}

// stopClean ends the pool and expects nothing wrong.
func (p *run) stopClean() {
	p.t.Helper()
	if _, err := p.stop(); err != nil {
		p.t.Errorf("Run: %v", err)
	}
}

// counts are the pool's counters of its first queue.
func (p *run) counts() pool.QueueStats {
	s := p.Stats()
	if len(s.Queues) == 0 {
		return pool.QueueStats{} // it has not started yet
	}
	return s.Queues[0]
}

// until waits for something the pool's counters show.
func (p *run) until(what string, cond func(c pool.QueueStats) bool) {
	p.t.Helper()
	testredis.Eventually(p.t, patience, func() bool { return cond(p.counts()) }, "%s", what)
}

var profileLine = regexp.MustCompile(`^(\d+) @`)

// goroutines counts those that the pool and its client have started.
func (p *run) goroutines() int {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		p.t.Fatal(err)
	}
	want, total := fmt.Sprintf("%q:%q", "pool", p.label), 0
	for group := range strings.SplitSeq(b.String(), "\n\n") {
		if !strings.Contains(group, want) {
			continue
		}
		for line := range strings.Lines(group) {
			if match := profileLine.FindStringSubmatch(line); match != nil {
				n, err := strconv.Atoi(match[1])
				if err != nil {
					p.t.Fatal(err)
				}
				total += n
			}
		}
	}
	return total
}

// logBook is a slog.Handler that keeps what was logged.
type logBook struct {
	mu    sync.Mutex
	lines []string
}

func (b *logBook) Enabled(context.Context, slog.Level) bool { return true }

func (b *logBook) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	fmt.Fprintf(&line, "%s %s %s", r.Time.Format("05.000"), r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&line, " %s=%v", a.Key, a.Value)
		return true
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line.String())
	return nil
}

func (b *logBook) WithAttrs([]slog.Attr) slog.Handler { return b }

func (b *logBook) WithGroup(string) slog.Handler { return b }

// count is the number of lines that contain the text.
func (b *logBook) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, line := range b.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines, "\n")
}
