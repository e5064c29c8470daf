package acker

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errTransient = fmt.Errorf("away: %w", flow.ErrTransient)
	errAmbiguous = fmt.Errorf("reply lost: %w: %w", flow.ErrTransient, flow.ErrAmbiguous)
	errPermanent = fmt.Errorf("WRONGTYPE: %w", flow.ErrPermanent)
)

// call is one call of the store.
type call struct {
	back    bool // HandBack
	settled []flow.Settlement
	at      time.Duration // since the rig was made
}

// String is what was sent, such as "ack ack release", or the first letter of HandBack.
func (c call) String() string {
	var words []string
	for _, s := range c.settled {
		words = append(words, s.Op.String())
	}
	return strings.Join(words, ", ")
}

func (c call) has(op flow.Op) bool {
	for _, s := range c.settled {
		if s.Op == op {
			return true
		}
	}
	return false
}

// rig is an acker with fakes of everything around it. It is the Store and the Slots.
type rig struct {
	acker    *Acker
	in       chan flow.Settlement
	book     *flow.Book
	counters flow.Counters
	logs     *logs
	began    time.Time
	lease    *flow.Lease
	made     int

	// answer is what the store answers; nil = everything is done. Set before Run, or between synctest.Waits.
	answer func(c call) ([]flow.Result, error)

	mu    sync.Mutex
	calls []call
	freed int
	bytes int64
}

// items is how many reservations a rig has at hand, all of one lease.
const items = 3000

func newRig(layout flow.Layout, batch int) *rig {
	g := &rig{
		in: make(chan flow.Settlement, items), book: flow.NewBook(90*time.Second, true, 0), logs: &logs{}, began: time.Now(),
		lease: flow.NewLease(0, items),
	}
	for i := range g.lease.Items {
		g.lease.Items[i].Handle = fmt.Sprintf("handle %04d", i)
	}
	g.book.Add(g.lease, time.Now())
	g.acker = New(Config{
		Queue: 2, Name: "orders", Layout: layout, Store: g, Slots: g, Book: g.book, Counters: &g.counters, In: g.in,
		Batch: batch, Logger: slog.New(g.logs),
	})
	return g
}

// Settle is the Store's.
func (g *rig) Settle(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error) {
	return g.called(ctx, call{settled: append([]flow.Settlement(nil), settled...)})
}

// HandBack is the Store's.
func (g *rig) HandBack(ctx context.Context, held []*flow.Reservation) ([]flow.Result, error) {
	c := call{back: true}
	for _, r := range held {
		c.settled = append(c.settled, flow.Settlement{Reservation: r, Op: flow.HandBack})
	}
	return g.called(ctx, c)
}

func (g *rig) called(ctx context.Context, c call) ([]flow.Result, error) {
	c.at = time.Since(g.began)
	g.mu.Lock()
	g.calls = append(g.calls, c)
	answer := g.answer
	g.mu.Unlock()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", flow.ErrTransient, ctx.Err())
	}
	if answer == nil {
		return make([]flow.Result, len(c.settled)), nil
	}
	results, err := answer(c)
	if results == nil && err == nil {
		results = make([]flow.Result, len(c.settled))
	}
	return results, err
}

// Release is the Slots'.
func (g *rig) Release(queue, n int, bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if queue == g.acker.cfg.Queue {
		g.freed += n
		g.bytes += bytes
	}
}

// settled makes the next reservation's settlement, as a worker would.
func (g *rig) settled(op flow.Op) flow.Settlement {
	r := &g.lease.Items[g.made]
	g.made++
	r.Start(time.Now(), nil)
	r.Settle()
	return flow.Settlement{Reservation: r, Op: op}
}

// send gives the acker a settlement of each operation, at once.
func (g *rig) send(ops ...flow.Op) {
	for _, op := range ops {
		g.in <- g.settled(op)
	}
}

// running starts Run; the channel gets its result.
func (g *rig) running(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- g.acker.Run(ctx) }()
	return done
}

// end closes the channel and returns Run's result.
func (g *rig) end(done <-chan error) error {
	close(g.in)
	return <-done
}

// sent takes the calls made by now. Called in a bubble.
func (g *rig) sent() []call {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := g.calls
	g.calls = nil
	return calls
}

// wantSent compares the calls made since the last look.
func (g *rig) wantSent(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, c := range g.sent() {
		got = append(got, c.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// wantFreed checks that n reservations in all have given back slots, bytes and texts.
func (g *rig) wantFreed(t *testing.T, n int) {
	t.Helper()
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	const size = len("handle 0000")
	if g.freed != n || g.bytes != int64(n*size) {
		t.Errorf("%d slots and %d bytes are freed, want %d and %d", g.freed, g.bytes, n, n*size)
	}
	if held := len(g.book.Renewable(g.lease, time.Now(), nil)); held != items-n {
		t.Errorf("%d reservations are renewed, want %d", held, items-n)
	}
}

// wantCount compares the counters, without zeros.
func (g *rig) wantCount(t *testing.T, want map[string]int64) {
	t.Helper()
	synctest.Wait()
	got, v := map[string]int64{}, reflect.ValueOf(&g.counters).Elem()
	for i := range v.NumField() {
		if n, ok := v.Field(i).Addr().Interface().(*atomic.Int64); ok && n.Load() != 0 {
			got[v.Type().Field(i).Name] = n.Load()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

// logs is what is logged.
type logs = testlog.Recorder
