package router

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
)

// runs is a handler that notes each run.
type runs struct{ n int }

func (h *runs) Handle(context.Context, *delivery.Delivery) error { h.n++; return nil }

// one makes a rig of one worker and one queue whose leases are renewed or not.
func one(h delivery.Handler, policy Policy, renew bool) *rig {
	g := newRig(1, policy, h, flow.Legacy)
	g.cfg.Queues[0].Book = flow.NewBook(lease, renew, 0)
	return g
}

func wantCount(t *testing.T, g *rig, want map[string]int64) {
	t.Helper()
	if diff := cmp.Diff(want, g.counted(0)); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func wantOps(t *testing.T, g *rig, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, ops(g.settlements(0))); diff != "" {
		t.Errorf("settlements (-want +got):\n%s", diff)
	}
}

func TestLostBeforeItsStart(t *testing.T) { // B12
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &runs{}
		g := one(h, Policy{}, true)
		g.put(0, body(0))[0].Lose()
		g.end()
		_ = g.Run(t.Context())
		if h.n != 0 {
			t.Error("the handler ran without a lease")
		}
		wantOps(t, g, "forget")
		wantCount(t, g, map[string]int64{"Lost": 1})
	})
}

// TestLostWhileRunning cancels the handler, and records nothing of its outcome, whatever it is (L4, Z4).
func TestLostWhileRunning(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		outcome error
		count   map[string]int64
	}{
		{"success", nil, map[string]int64{"Started": 1, "Late": 1, "Lost": 1}},
		{"error", errBoom, map[string]int64{"Started": 1, "Late": 1, "Lost": 1, "Failed": 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := one(ended(flow.ErrLeaseLost, func() error { return tc.outcome }), Policy{HandlerTimeout: time.Hour}, true)
				done := g.running(t.Context())
				r := g.put(0, body(0))[0]
				g.end()
				synctest.Wait()
				began := time.Now()
				if !r.Lose() {
					t.Fatal("not running")
				}
				<-done
				if d := time.Since(began); d != 0 {
					t.Errorf("the handler was cancelled %s later", d)
				}
				wantOps(t, g, "forget")
				wantCount(t, g, tc.count)
			})
		})
	}
}

// TestStaleLease is what a process meets that was frozen with a full buffer: nothing runs before a renewal
// shows that the message is still its own (B12).
func TestStaleLease(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		then func(g *rig, r *flow.Reservation, stop func())
		runs int
		ops  []string
	}{
		{"renewed", func(g *rig, r *flow.Reservation, _ func()) {
			g.cfg.Queues[0].Book.Renewed(r.Lease(), time.Now())
		}, 1, []string{"ack"}},
		{"renewed too late again", func(g *rig, r *flow.Reservation, _ func()) {
			book := g.cfg.Queues[0].Book
			book.Renewed(r.Lease(), time.Now().Add(-lease))
			synctest.Wait()
			book.Renewed(r.Lease(), time.Now())
		}, 1, []string{"ack"}},
		{"found lost", func(g *rig, r *flow.Reservation, _ func()) {
			r.Lose()
			g.cfg.Queues[0].Book.Renewed(r.Lease(), time.Now())
		}, 0, []string{"forget"}},
		{"the pool stops hard", func(_ *rig, _ *flow.Reservation, stop func()) { stop() }, 0, []string{"forget"}},
		{"the pool drains", func(g *rig, r *flow.Reservation, _ func()) {
			g.Drain()
			g.Leftovers()
			g.cfg.Queues[0].Book.Renewed(r.Lease(), time.Now())
		}, 0, []string{"hand back"}}, // not started after Drain, although it was received before (B26)
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &runs{}
				g := one(h, Policy{}, true)
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				r := g.put(0, body(0))[0]
				g.end()
				time.Sleep(lease) // in the buffer, unrenewed
				done := g.running(ctx)
				synctest.Wait()
				if h.n != 0 || len(g.out[0]) != 0 {
					t.Fatal("run or settled under a lease that may have run out")
				}
				tc.then(g, r, func() { stop(flow.ErrHardStop) })
				<-done
				if h.n != tc.runs {
					t.Errorf("ran %d times, want %d", h.n, tc.runs)
				}
				wantOps(t, g, tc.ops...)
			})
		})
	}
}

// TestStaleLeaseWithoutRenewal drops the message: nothing will ever show that it is still its own.
func TestStaleLeaseWithoutRenewal(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]string{lease - time.Second - 1: "ack", lease - time.Second: "forget"} {
		synctest.Test(t, func(t *testing.T) {
			h := &runs{}
			g := one(h, Policy{}, false)
			g.put(0, body(0))
			g.end()
			time.Sleep(age)
			_ = g.Run(t.Context())
			wantOps(t, g, want)
			if (h.n == 1) != (want == "ack") {
				t.Errorf("after %s: ran %d times", age, h.n)
			}
		})
	}
}

// TestHandlerDeadline holds how long a handler may run: at most its timeout, and without renewal at most as
// long as the lease is surely held (B11).
func TestHandlerDeadline(t *testing.T) {
	t.Parallel()
	const age = 10 * time.Second // in the buffer
	for _, tc := range []struct {
		name    string
		book    *flow.Book
		timeout time.Duration
		want    time.Duration // 0 = no deadline
	}{
		{"renewed", flow.NewBook(lease, true, 0), 0, 0},
		{"renewed, with a timeout beyond the lease", flow.NewBook(lease, true, 0), time.Hour, time.Hour},
		{"not renewed", flow.NewBook(lease, false, 0), 0, lease - time.Second - age},
		{"not renewed, a longer timeout", flow.NewBook(lease, false, 0), time.Hour, lease - time.Second - age},
		{"not renewed, a shorter timeout", flow.NewBook(lease, false, 0), time.Second, time.Second},
		{"lease disabled", flow.NewBook(0, false, 0), 0, 0},
		{"lease disabled, with a timeout", flow.NewBook(0, true, 0), time.Hour, time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var got time.Duration
				g := newRig(1, Policy{HandlerTimeout: tc.timeout}, delivery.HandlerFunc(func(ctx context.Context, _ *delivery.Delivery) error {
					if at, ok := ctx.Deadline(); ok {
						got = time.Until(at)
						<-ctx.Done()
						if cause := context.Cause(ctx); !errors.Is(cause, flow.ErrHandlerTimeout) {
							t.Errorf("ended because of %v", cause)
						}
					}
					return nil
				}), flow.Legacy)
				g.cfg.Queues[0].Book = tc.book
				g.put(0, body(0))
				g.end()
				time.Sleep(age)
				_ = g.Run(t.Context())
				if got != tc.want {
					t.Errorf("the deadline is in %s, want %s", got, tc.want)
				}
				wantOps(t, g, "ack")
			})
		})
	}
}

// TestTimeoutBeforeHardStop keeps the first reason: a handler whose time was over before the pool gave up on it
// has failed.
func TestTimeoutBeforeHardStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		g := one(ended(flow.ErrHandlerTimeout, func() error {
			stop(flow.ErrHardStop)
			return errBoom
		}), Policy{HandlerTimeout: time.Minute}, true)
		g.put(0, body(0))
		g.end()
		_ = g.Run(ctx)
		wantOps(t, g, "leave")
		wantCount(t, g, map[string]int64{"Started": 1, "Failed": 1})
	})
}

// TestDeploysUseUpNoAttempts is B28: interrupted five times with three attempts allowed, a message is still
// handled, and the handler sees the attempts of real failures alone.
func TestDeploysUseUpNoAttempts(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		synctest.Test(t, func(t *testing.T) {
			policy := Policy{MaxAttempts: 3, LegacyRetry: Requeue}
			text, numbers := body(0), []int64(nil)
			deliver := func(handler func(ctx context.Context) error) flow.Settlement {
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				g := newRig(1, policy, delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
					numbers = append(numbers, d.Number)
					return handler(ctx)
				}), layout)
				g.put(0, text)
				g.end()
				done := g.running(ctx)
				synctest.Wait()
				stop(flow.ErrHardStop)
				<-done
				return g.settlements(0)[0]
			}
			for range 5 {
				s := deliver(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
				if s.Op != flow.HandBack || s.Reservation.Ready() != text {
					t.Fatalf("%s: interrupted, then %s of %s", layout, s.Op, s.Reservation.Ready())
				}
			}
			s := deliver(func(context.Context) error { return errBoom }) // a real failure
			if text = s.Text; layout == flow.Zset {
				text = s.Reservation.Text
			}
			if s := deliver(func(context.Context) error { return nil }); s.Op != flow.Ack {
				t.Errorf("%s: ends with %s", layout, s.Op)
			}
			if diff := cmp.Diff([]int64{1, 1, 1, 1, 1, 1, 2}, numbers); diff != "" {
				t.Errorf("%s: delivery numbers (-want +got):\n%s", layout, diff)
			}
		})
	}
}
