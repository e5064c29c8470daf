package reserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestFaults keeps trying at the rate for the kind of fault, logs each change once, and goes on when it is
// over (B15, B22).
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		fault     error
		least     int // tries in a minute
		most      int
		perSecond int
	}{
		{"transient", errTransient, 45, 125, 6},
		{"permanent", errPermanent, 9, 30, 2},
		{"of no class", errors.New("odd"), 9, 30, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(nil)
				const outage = time.Minute
				g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) {
					if time.Since(g.began) < outage {
						return flow.Reserved{}, tc.fault
					}
					return flow.Reserved{}, nil
				}
				events := g.run(t, outage+20*time.Second)
				var tries []event
				after := time.Duration(0)
				for _, e := range of(events, "reserve") {
					if e.at < outage {
						tries = append(tries, e)
					} else if after == 0 {
						after = e.at - outage
					}
				}
				if n := len(tries); n < tc.least || n > tc.most {
					t.Errorf("%d tries in a minute, want %d to %d", n, tc.least, tc.most)
				}
				for i := tc.perSecond; i < len(tries); i++ {
					if d := tries[i].at - tries[i-tc.perSecond].at; d <= time.Second {
						t.Errorf("%d tries within %s", tc.perSecond+1, d)
					}
				}
				if after > 8*time.Second || errors.Is(tc.fault, flow.ErrTransient) && after > 1600*time.Millisecond {
					t.Errorf("goes on %s after the fault is over", after)
				}
				g.logs.Want(t, "held up", "works again")
			})
		})
	}
}

// TestSuccessResetsThePauses, so that a short fault after a long one is met with short pauses.
func TestSuccessResetsThePauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			if call == 20 {
				return flow.Reserved{Left: 1}, nil
			}
			return flow.Reserved{}, errTransient
		}
		calls := of(g.run(t, time.Minute), "reserve")
		if d := calls[22].at - calls[21].at; d > 160*time.Millisecond {
			t.Errorf("the first pause of the second fault is %s", d)
		}
		g.logs.Want(t, "held up", "works again", "held up")
	})
}

// TestTokens counts a token with the next reserve that succeeds, once (Z3).
func TestTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		waits := 0
		g.waiting = func(ctx context.Context) (int, error) {
			if waits++; waits > 1 {
				<-ctx.Done()
				return 0, nil
			}
			return 1, nil
		}
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			if call == 1 || call == 2 {
				return flow.Reserved{}, errTransient
			}
			return flow.Reserved{Moved: map[bool]int{true: 1}[call == 3]}, nil
		}
		var tokens []int
		events := g.run(t, 10*time.Second)
		for _, e := range of(events, "reserve") {
			tokens = append(tokens, e.req.Tokens)
		}
		want := []int{0, 1, 1, 1, 0} // none, taken, still held after two faults, counted, gone
		if len(tokens) != len(want) {
			t.Fatalf("tokens %v, want %v", tokens, want)
		}
		for i := range want {
			if tokens[i] != want[i] {
				t.Errorf("tokens %v, want %v", tokens, want)
				break
			}
		}
		if got := names(events[len(events)-2:]); got != "wait, close" {
			t.Errorf("ends with %s: no token is held", got)
		}
	})
}

// TestTokenGoesBackAtStop, on a context that has not ended, before the connection does.
func TestTokenGoesBackAtStop(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{nil, errTransient} {
		synctest.Test(t, func(t *testing.T) {
			g := newRig(nil)
			g.givenUp = fault
			g.waiting = func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 1, nil
			}
			events := g.run(t, time.Second)
			if got := names(events); got != "reserve, wait, return token, close" {
				t.Errorf("got %s", got)
			}
			if err := events[2].ctx; err != nil {
				t.Errorf("returned on a context that has ended: %v", err)
			}
			if fault == nil {
				g.logs.Want(t)
			} else {
				g.logs.Want(t, "token not returned")
			}
		})
	}
}

// TestNoCallAfterTheEnd: once the context has ended nothing more is reserved, wherever it was at that moment.
func TestNoCallAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		rig  func(g *rig, end func())
		want string
	}{
		{"before the start", func(_ *rig, end func()) { end() }, "close"},
		{"in a reserve", func(g *rig, end func()) {
			g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) { end(); return got(2, 10), nil }
		}, "reserve, close"},
		{"in a reserve that fails", func(g *rig, end func()) {
			g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) { end(); return flow.Reserved{}, errTransient }
		}, "reserve, close"},
		{"in a reserve that is refused", func(g *rig, end func()) {
			g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) { end(); return flow.Reserved{}, errPermanent }
		}, "reserve, close"},
		{"in a reserve of a paused queue", func(g *rig, end func()) {
			g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) { end(); return flow.Reserved{Paused: true}, nil }
		}, "reserve, close"},
		{"in a wait", func(g *rig, end func()) {
			g.waiting = func(context.Context) (int, error) { end(); return 0, nil }
		}, "reserve, wait, close"},
		{"in a wait that fails", func(g *rig, end func()) {
			g.waiting = func(context.Context) (int, error) { end(); return 0, errPermanent }
		}, "reserve, wait, close"},
		{"without a free slot", func(g *rig, end func()) {
			if _, _, err := g.slots.Acquire(context.Background(), 0, capacity, 1); err != nil {
				panic(err)
			}
			time.AfterFunc(time.Second, end)
		}, "close"},
		{"before a renewal", func(g *rig, end func()) {
			l := flow.NewLease(0, 1)
			g.cfg.Book.Add(l, time.Now().Add(-time.Hour))
			time.AfterFunc(time.Second, end)
		}, "close"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				g := newRig(nil)
				tc.rig(g, cancel)
				if err := g.Run(ctx); err != nil {
					t.Error(err)
				}
				events := g.happened()
				if got := names(events); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
				if n, _ := g.slots.Free(); n+len(g.out) != capacity && tc.name != "without a free slot" {
					t.Errorf("%d slots are free, %d messages given", n, len(g.out))
				}
			})
		})
	}
}

// TestTheEndDoesNotCancelACall: a reserve given up half-way would leave its messages to their leases.
func TestTheEndDoesNotCancelACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newRig(nil)
		g.cfg.Store = bounded{g, t}
		g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) {
			cancel()
			return got(3, 10), nil
		}
		if err := g.Run(ctx); err != nil {
			t.Error(err)
		}
		if len(g.out) != 3 {
			t.Errorf("%d messages given, want 3", len(g.out))
		}
	})
}

// bounded looks at the context of a reserve after its answer.
type bounded struct {
	*rig
	t *testing.T
}

func (b bounded) Reserve(ctx context.Context, req flow.ReserveRequest) (flow.Reserved, error) {
	res, err := b.rig.Reserve(ctx, req)
	if ctx.Err() != nil {
		b.t.Errorf("the call's context has ended: %v", ctx.Err())
	}
	if at, ok := ctx.Deadline(); !ok || time.Until(at) > callTimeout {
		b.t.Error("the call has no bound")
	}
	return res, err
}

// TestRenewalGoesFirst: the reserve's sweep would give this process's own overdue messages away (B12).
func TestRenewalGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		l := flow.NewLease(0, 1)
		l.Items[0].Handle = "x"
		g.cfg.Book.Add(l, time.Now().Add(-89*time.Second))
		stop := g.running(t)
		time.Sleep(10 * time.Second)
		if events := g.happened(); len(events) != 0 {
			t.Fatalf("before the renewal: %s", names(events))
		}
		g.cfg.Book.Renewed(l, time.Now())
		if got := names(g.happened()); got != "reserve, wait" {
			t.Errorf("after it: %s", got)
		}
		stop()
	})
}

// TestLastCall tells the scheduler of successful calls alone: a failed one has swept nothing.
func TestLastCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		if !g.LastCall().Before(g.began) {
			t.Error("a call before the first")
		}
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			if call == 0 {
				return flow.Reserved{}, nil
			}
			return flow.Reserved{}, errTransient
		}
		g.run(t, time.Minute)
		if !g.LastCall().Equal(g.began) {
			t.Errorf("the last call was %s after the first", g.LastCall().Sub(g.began))
		}
	})
}
