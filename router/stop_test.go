package router

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// blocked is a handler that waits for release, whatever its context says, and returns err.
func blocked(release <-chan struct{}, err error) delivery.HandlerFunc {
	return func(context.Context, *delivery.Delivery) error { <-release; return err }
}

// isClosed reports whether Run has returned. Called in a bubble.
func isClosed(done <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// ops is the operations of settlements, in order.
func ops(all []flow.Settlement) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.Op.String())
	}
	return names
}

func TestRunEndsWithItsSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(4, Policy{}, returns(nil), layouts...)
		ctx, cancel := context.WithCancel(t.Context())
		done := g.running(ctx)
		cancel() // cancels handlers; what is in the buffer is still to be settled
		g.put(0, body(0), body(0))
		if isClosed(done) {
			t.Fatal("ended before its source")
		}
		g.put(1, body(0))
		g.end()
		if !isClosed(done) {
			t.Fatal("does not end with its source")
		}
		if n := len(g.settlements(0)) + len(g.settlements(1)); n != 3 {
			t.Errorf("%d settlements, want 3", n)
		}
	})
}

// TestDrain keeps what nobody started, for one hand back; what comes late is handed back one by one (B26).
// What runs goes on, and its failure is a failure.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := newRig(1, Policy{}, blocked(release, errBoom), flow.Zset)
		done := g.running(t.Context())
		g.put(0, body(0))
		synctest.Wait()
		waiting := g.put(0, body(1), "hello", body(2))
		g.Drain()
		close(release)
		synctest.Wait()
		if got := ops(g.settlements(0)); len(got) != 1 || got[0] != "leave" {
			t.Errorf("the running handler's failure: %v", got)
		}
		left := g.Leftovers()
		if diff := cmp.Diff(waiting, left, cmp.Comparer(func(x, y *flow.Reservation) bool { return x == y })); diff != "" {
			t.Errorf("kept, in order (-want +got):\n%s", diff)
		}
		for _, r := range left {
			if r.State() != flow.Buffered {
				t.Errorf("%s has state %d: its settlement is not the keeper's any more", r, r.State())
			}
		}
		late := g.put(0, body(3))[0]
		g.end()
		<-done
		all := g.settlements(0)
		if len(all) != 1 || all[0].Op != flow.HandBack || all[0].Reservation != late {
			t.Errorf("what came late: %v", ops(all))
		}
		if diff := cmp.Diff(map[string]int64{"Started": 1, "Failed": 1}, g.counted(0)); diff != "" {
			t.Errorf("counters (-want +got):\n%s", diff)
		}
	})
}

// TestRunningNamesMessagesWithoutBodies names what runs by id and URN (B27, B48).
func TestRunningNamesMessagesWithoutBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := newRig(3, Policy{}, blocked(release, nil), flow.Legacy, flow.Zset)
		done := g.running(t.Context())
		g.put(0, body(0))
		g.put(1, body(0))
		g.end()
		synctest.Wait()
		want := `message "m-1" ("` + urn + `") of queue "orders"`
		if diff := cmp.Diff([]string{want, want}, g.Running()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		close(release)
		<-done
		if got := g.Running(); got != nil {
			t.Errorf("named after the end: %v", got)
		}

		// A message that waits for its lease has not been looked at.
		g = newRig(1, Policy{}, returns(nil), flow.Legacy)
		done = g.running(t.Context())
		q := &g.cfg.Queues[0]
		r := reserved(0, flow.Legacy, body(0))
		q.Book.Add(r.Lease(), time.Now().Add(-lease))
		g.in.Put(0, r.Lease().Items)
		g.end()
		synctest.Wait()
		if diff := cmp.Diff([]string{`an undecoded message of queue "orders"`}, g.Running()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		q.Book.Renewed(r.Lease(), time.Now())
		<-done
	})
}

// TestAbandon is B27: handlers, hooks and policies that do not return are named and left to their leases, and
// nothing of them reaches the acker's channel, which is closed by then.
func TestAbandon(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		urn  string
		rig  func(release <-chan struct{}) (Policy, delivery.Handler)
		sent []string // settlements on their way when it hangs
		late int64    // outcomes that come late
	}{
		{"a handler that succeeds late", urn, func(release <-chan struct{}) (Policy, delivery.Handler) {
			return Policy{}, blocked(release, nil)
		}, nil, 1},
		{"a handler that fails late", urn, func(release <-chan struct{}) (Policy, delivery.Handler) {
			return Policy{}, blocked(release, errBoom)
		}, nil, 1},
		{"a handler that panics late", urn, func(release <-chan struct{}) (Policy, delivery.Handler) {
			return Policy{}, delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { <-release; panic(1) })
		}, nil, 1},
		{"a handler that exits late", urn, func(release <-chan struct{}) (Policy, delivery.Handler) {
			return Policy{}, delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error { <-release; return exits(ctx, d) })
		}, nil, 1},
		{"OnUnknownURN", urn, func(release <-chan struct{}) (Policy, delivery.Handler) {
			return Policy{OnUnknownURN: func(context.Context, error, envelope.Envelope, string) error { <-release; return nil }}, NewMux()
		}, nil, 1},
		{"a backoff policy", urn, func(release <-chan struct{}) (Policy, delivery.Handler) {
			return Policy{Delay: Delay{Policy: func(int64) float64 { <-release; return 1 }}}, returns(errBoom)
		}, nil, 1},
		{"OnError", urn, func(release <-chan struct{}) (Policy, delivery.Handler) {
			return Policy{OnError: func(context.Context, error, envelope.Envelope, string) { <-release }}, returns(errBoom)
		}, []string{"leave", "leave"}, 0}, // the settlement goes first
		{"OnError for poison", "", func(release <-chan struct{}) (Policy, delivery.Handler) {
			return Policy{OnError: func(context.Context, error, envelope.Envelope, string) { <-release }}, returns(nil)
		}, []string{"dead-letter", "dead-letter"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				policy, handler := tc.rig(release)
				g := newRig(3, policy, handler, flow.Zset)
				ctx, stop := context.WithCancelCause(t.Context())
				done := g.running(ctx)
				texts := []string{bodyOf(tc.urn, 0, time.Now()), bodyOf(tc.urn, 1, time.Now())}
				all := g.put(0, texts...)
				synctest.Wait()
				g.Drain()
				g.end()
				stop(flow.ErrHardStop)
				if isClosed(done) {
					t.Fatal("Run does not wait for them")
				}
				named := g.Abandon()
				if len(named) != 2 || strings.Contains(strings.Join(named, ""), "secret") {
					t.Errorf("named: %v", named)
				}
				if !isClosed(done) {
					t.Fatal("Run still waits for them")
				}
				if again := g.Abandon(); again != nil {
					t.Errorf("named again: %v", again)
				}
				if diff := cmp.Diff(tc.sent, ops(g.settlements(0))); diff != "" {
					t.Errorf("settlements (-want +got):\n%s", diff)
				}
				close(g.out[0])
				close(release) // a send from here on would panic
				synctest.Wait()
				if got := g.counted(0)["Late"]; got != tc.late*2 {
					t.Errorf("%d outcomes are late, want %d", got, tc.late*2)
				}
				for _, r := range all {
					if want := map[bool]flow.State{true: flow.Lost, false: flow.Settled}[tc.late == 1]; r.State() != want {
						t.Errorf("state %d, want %d", r.State(), want)
					}
				}
			})
		})
	}
}

// TestAbandonMeetsTheEnd abandons workers at the very moment their handlers return or lose their leases. Each
// reservation is settled once or not at all, Abandon ends, and no send meets the closed channel.
func TestAbandonMeetsTheEnd(t *testing.T) {
	t.Parallel()
	for round := range 600 {
		var outcome error
		if round%3 == 1 {
			outcome = errBoom
		}
		release := make(chan struct{})
		var started atomic.Int64
		allStarted := make(chan struct{})
		const workers = 4
		g := newRig(workers, Policy{}, delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
			if started.Add(1) == workers {
				close(allStarted)
			}
			return blocked(release, outcome)(ctx, d)
		}), flow.Legacy)
		ctx, stop := context.WithCancelCause(t.Context())
		done := g.running(ctx)
		all := g.put(0, body(0), body(0), body(0), body(0))
		<-allStarted
		g.end()
		stop(flow.ErrHardStop)

		losing := make(chan struct{})
		go func() {
			defer close(losing)
			close(release)
			if round%2 == 0 {
				all[round%workers].Lose()
			}
		}()
		abandoned := make(chan struct{})
		go func() { defer close(abandoned); g.Abandon() }()
		within(t, abandoned, "Abandon does not return")
		within(t, done, "Run does not return")
		close(g.out[0])
		<-losing

		settled := map[*flow.Reservation]int{}
		for s := range g.out[0] {
			settled[s.Reservation]++
		}
		for _, r := range all {
			if settled[r] > 1 || settled[r] == 0 && r.State() == flow.Settled {
				t.Fatalf("settled %d times in state %d", settled[r], r.State())
			}
		}
	}
}

func within(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal(what)
	}
}

// TestAbandonFindsAJobThatWasJustSent meets each path to the acker right behind the send, when the worker
// still has the job in hand.
func TestAbandonFindsAJobThatWasJustSent(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"ack": nil, "failure": errBoom, "unknown": ErrUnknownURN} {
		for _, cause := range []error{nil, flow.ErrHardStop} {
			t.Run(fmt.Sprint(name, " ", cause), func(t *testing.T) {
				t.Parallel()
				g := newRig(1, Policy{}, returns(nil), flow.Legacy)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if cause != nil {
					cancel(cause)
				}
				r := reserved(0, flow.Legacy, body(0))
				r.Start(time.Now(), nil)
				q := &g.cfg.Queues[0]
				d, err := read(q, r)
				if err != nil {
					t.Fatal(err)
				}
				j := &job{reservation: r, queue: q.Name}
				(&worker{rt: g.Router, ctx: ctx}).conclude(ctx, q, j, d, outcome)
				abandoned := make(chan struct{})
				go func() { defer close(abandoned); j.abandon() }()
				within(t, abandoned, "abandoning waits for a send that has happened")
				if n := len(g.settlements(0)); n != 1 {
					t.Errorf("%d settlements", n)
				}
			})
		}
	}
}
