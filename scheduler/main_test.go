package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errTransient = fmt.Errorf("away: %w", flow.ErrTransient)
	errPermanent = fmt.Errorf("WRONGTYPE: %w", flow.ErrPermanent)
)

const (
	tick       = time.Second
	retryAfter = 90 * time.Second
	chunk      = 10
)

// rig is a scheduler of one queue with fakes of everything around it. It is the Store.
type rig struct {
	queue    Queue
	counters flow.Counters
	logs     *logs
	began    time.Time

	// What the store answers; nil = all is well and nothing is found. Set before Run.
	renew func(ctx context.Context, handles []string) ([]flow.Result, error)
	sweep func(ctx context.Context) (int, error)
	audit func() (flow.Audit, error)
	adopt func(values []string) (int, error)
	trim  func() (discarded int, more bool, err error)
	pause func() (bool, error)

	unstarted int // what waits for a worker; set before Run

	mu    sync.Mutex
	calls []call
}

// call is one call of the store.
type call struct {
	what   string   // renew, sweep, audit, adopt, trim, paused?, hand back
	values []string // handles or values
	at     time.Duration
}

func newRig() *rig {
	g := &rig{logs: &logs{}, began: time.Now()}
	g.queue = Queue{
		Name: "orders", Store: g, Book: flow.NewBook(retryAfter, true, 0), Counters: &g.counters,
		LastCall: time.Now, Chunk: chunk, Lease: retryAfter,
		Pause: &flow.Pause{}, OnPaused: func(on bool) { g.queue.Pause.SetEverywhere(on) },
		Unstarted: func() int { return g.unstarted }, HandBack: g.handBack,
	}
	return g
}

// running starts a scheduler; stop ends it and waits.
func (g *rig) running(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := New(Config{Queues: []Queue{g.queue}, Tick: tick, Logger: slog.New(g.logs)})
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// run runs for d and returns what was called.
func (g *rig) run(t *testing.T, d time.Duration) []call {
	t.Helper()
	stop := g.running(t)
	time.Sleep(d)
	synctest.Wait()
	calls := g.made()
	stop()
	return calls
}

// made takes the calls made up to now. Called in a bubble.
func (g *rig) made() []call {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := g.calls
	g.calls = nil
	return calls
}

func (g *rig) note(what string, values []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = append(g.calls, call{what, slices.Clone(values), time.Since(g.began)})
}

// Renew is the Store's.
func (g *rig) Renew(ctx context.Context, handles []string) ([]flow.Result, error) {
	g.note("renew", handles)
	if g.renew != nil {
		return g.renew(ctx, handles)
	}
	return make([]flow.Result, len(handles)), nil
}

// Sweep is the Store's.
func (g *rig) Sweep(ctx context.Context, limit int) (int, error) {
	g.note("sweep", []string{fmt.Sprint(limit)})
	if g.sweep != nil {
		return g.sweep(ctx)
	}
	return 0, nil
}

// Audit is the Store's.
func (g *rig) Audit(context.Context) (flow.Audit, error) {
	g.note("audit", nil)
	if g.audit != nil {
		return g.audit()
	}
	return flow.Audit{}, nil
}

// Adopt is the Store's.
func (g *rig) Adopt(_ context.Context, values []string) (int, error) {
	g.note("adopt", values)
	if g.adopt != nil {
		return g.adopt(values)
	}
	return len(values), nil
}

// Paused is the Store's.
func (g *rig) Paused(context.Context) (bool, error) {
	g.note("paused?", nil)
	if g.pause != nil {
		return g.pause()
	}
	return false, nil
}

func (g *rig) handBack(context.Context) { g.note("hand back", nil) }

// Trim is the Store's.
func (g *rig) Trim(context.Context, flow.DeadLetterLimits) (discarded int, more bool, err error) {
	g.note("trim", nil)
	if g.trim != nil {
		return g.trim()
	}
	return 0, false, nil
}

// reserve adds a lease of n messages that begins now.
func (g *rig) reserve(n int) *flow.Lease {
	l := flow.NewLease(0, n)
	for i := range l.Items {
		l.Items[i].Handle = fmt.Sprintf("%p/%d", l, i)
	}
	g.queue.Book.Add(l, time.Now())
	return l
}

// of is the calls of one kind.
func of(calls []call, what string) []call {
	var found []call
	for _, c := range calls {
		if c.what == what {
			found = append(found, c)
		}
	}
	return found
}

// times is when calls were made.
func times(calls []call) []time.Duration {
	var all []time.Duration
	for _, c := range calls {
		all = append(all, c.at)
	}
	return all
}

// logs is what is logged.
type logs struct{ testlog.Recorder }

// want checks that the lines logged so far contain these texts, one each, in order, and name the queue.
func (l *logs) want(t *testing.T, texts ...string) {
	t.Helper()
	synctest.Wait()
	l.Want(t, texts...)
	if named := l.With("queue=orders"); len(named) != len(l.Lines()) {
		t.Errorf("%d of %d lines name the queue", len(named), len(l.Lines()))
	}
}
