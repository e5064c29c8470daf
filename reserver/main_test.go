package reserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/slots"
	"github.com/babelpool/babelpool/internal/testlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errTransient = fmt.Errorf("away: %w", flow.ErrTransient)
	errAmbiguous = fmt.Errorf("reply lost: %w: %w", flow.ErrTransient, flow.ErrAmbiguous)
	errPermanent = fmt.Errorf("WRONGTYPE: %w", flow.ErrPermanent)
)

const (
	capacity = 10       // slots of a rig
	budget   = 10 << 20 // bytes of a rig
)

// rig is a reserver with fakes of everything around it. It is the Store.
type rig struct {
	*Reserver
	out      chan *flow.Reservation
	slots    *slots.Pool
	counters flow.Counters
	logs     *logs
	poison   []string
	began    time.Time

	// What the store answers, by the number of the call from 0. Set before Run.
	answer  func(call int, req flow.ReserveRequest) (flow.Reserved, error)
	found   func(call int) (flow.Reserved, error)  // what Recall answers; nil = nothing is found
	waiting func(ctx context.Context) (int, error) // nil = a second, as on an empty queue
	givenUp error                                  // what ReturnToken answers

	mu     sync.Mutex
	seen   map[string]int // calls of each kind
	events []event        // since the last look
}

// event is one call of the store.
type event struct {
	what string // reserve, recall, wait, return token, close
	req  flow.ReserveRequest
	at   time.Duration // since the rig was made
	ctx  error         // of the call's context
}

func newRig(change func(*Config)) *rig {
	g := &rig{
		out: make(chan *flow.Reservation, 1000), slots: slots.New(capacity, budget, []int{1}), logs: &logs{}, began: time.Now(),
		seen: map[string]int{},
	}
	cfg := Config{
		Name: "orders", Store: g, Slots: g.slots, Book: flow.NewBook(90*time.Second, true, 0), Pause: &flow.Pause{}, Counters: &g.counters,
		Out:   g,
		Batch: 4, Bytes: 1 << 20, PollInterval: time.Second, Logger: slog.New(g.logs),
		OnPoison: func(_ context.Context, raw string) { g.poison = append(g.poison, raw) },
	}
	if change != nil {
		change(&cfg)
	}
	g.Reserver = New(cfg)
	return g
}

// Put is the Buffer's.
func (g *rig) Put(_ int, items []flow.Reservation) {
	for i := range items {
		g.out <- &items[i]
	}
}

// note keeps an event and returns how many of its kind came before.
func (g *rig) note(ctx context.Context, e event) int {
	e.at, e.ctx = time.Since(g.began), ctx.Err()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e)
	g.seen[e.what]++
	return g.seen[e.what] - 1
}

// Reserve is the Store's.
func (g *rig) Reserve(ctx context.Context, req flow.ReserveRequest) (flow.Reserved, error) {
	n := g.note(ctx, event{what: "reserve", req: req})
	if g.answer == nil {
		return flow.Reserved{Sent: time.Now()}, nil
	}
	return g.answer(n, req)
}

// Recall is the Store's. The call's name is the event's.
func (g *rig) Recall(ctx context.Context, call string, sent time.Time) (flow.Reserved, error) {
	n := g.note(ctx, event{what: "recall " + call})
	if g.found == nil {
		return flow.Reserved{Sent: sent}, nil
	}
	res, err := g.found(n)
	res.Sent = sent
	return res, err
}

// Wait is the Store's.
func (g *rig) Wait(ctx context.Context) (int, error) {
	g.note(ctx, event{what: "wait"})
	if g.waiting != nil {
		return g.waiting(ctx)
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	return 0, nil
}

// ReturnToken is the Store's.
func (g *rig) ReturnToken(ctx context.Context) error {
	g.note(ctx, event{what: "return token"})
	return g.givenUp
}

// Close is the Store's.
func (g *rig) Close() { g.note(context.Background(), event{what: "close"}) }

// run runs until the time is over, and returns what happened.
func (g *rig) run(t *testing.T, d time.Duration) []event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := g.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	return g.happened()
}

// running starts Run; stop ends it and waits.
func (g *rig) running(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// happened takes the events up to now. Called in a bubble.
func (g *rig) happened() []event {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	events := g.events
	g.events = nil
	return events
}

// names is what happened, without details.
func names(events []event) string {
	var words []string
	for _, e := range events {
		words = append(words, e.what)
	}
	return strings.Join(words, ", ")
}

// of is the events of one kind.
func of(events []event, what string) []event {
	var found []event
	for _, e := range events {
		if e.what == what {
			found = append(found, e)
		}
	}
	return found
}

// got is an answer with n messages of a size.
func got(n, size int) flow.Reserved {
	l := flow.NewLease(0, n)
	for i := range l.Items {
		l.Items[i].Handle = strings.Repeat("x", size)
	}
	return flow.Reserved{Lease: l, Sent: time.Now()}
}

// logs is what is logged.
type logs = testlog.Recorder
