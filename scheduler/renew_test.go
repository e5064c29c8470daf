package scheduler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// finish settles a reservation as the acker does.
func (g *rig) finish(r *flow.Reservation) {
	r.Settle()
	g.queue.Book.Finish([]flow.Settlement{{Reservation: r}})
}

// TestRenewsAtAThird renews what is held from its reserve until its settlement (L8, Z10, B11).
func TestRenewsAtAThird(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		stop := g.running(t)
		time.Sleep(10 * time.Second)
		l := g.reserve(3)
		want := []string{l.Items[0].Handle, l.Items[1].Handle, l.Items[2].Handle}
		time.Sleep(95 * time.Second)
		calls := of(g.made(), "renew")
		if diff := cmp.Diff([]time.Duration{40 * time.Second, 70 * time.Second, 100 * time.Second}, times(calls)); diff != "" {
			t.Errorf("renewed (-want +got):\n%s", diff)
		}
		for _, c := range calls {
			if diff := cmp.Diff(want, c.values); diff != "" {
				t.Errorf("handles (-want +got):\n%s", diff)
			}
		}
		if left, _ := l.Remaining(time.Now()); left != 84*time.Second { // 89 s from 100 s, and it is 105 s
			t.Errorf("%s of the lease remain", left)
		}
		if n := g.counters.Renewed.Load(); n != 9 {
			t.Errorf("%d renewals counted, want 9", n)
		}

		g.finish(&l.Items[0])
		time.Sleep(30 * time.Second)
		calls = of(g.made(), "renew")
		if len(calls) != 1 || !cmp.Equal(calls[0].values, want[1:]) {
			t.Errorf("after one was settled: %v", calls)
		}
		g.finish(&l.Items[1])
		g.finish(&l.Items[2])
		time.Sleep(10 * time.Minute)
		if calls := of(g.made(), "renew"); len(calls) != 0 {
			t.Errorf("after all were settled: %v", calls)
		}
		g.reserve(1) // wakes it again
		time.Sleep(30 * time.Second)
		if calls := of(g.made(), "renew"); len(calls) != 1 {
			t.Errorf("after a pause: %v", calls)
		}
		stop()
	})
}

// TestAnOverdueLeaseIsRenewedAtOnce: that of a reserve whose messages were found again runs since the lost call, and
// is due before those that came later (B03, L8).
func TestAnOverdueLeaseIsRenewedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		stop := g.running(t)
		time.Sleep(time.Minute)
		g.reserve(1) // the renewer sleeps for half a minute
		time.Sleep(10 * time.Second)
		found := flow.NewLease(0, 1)
		found.Items[0].Handle = "found"
		g.queue.Book.Add(found, time.Now().Add(-50*time.Second))
		synctest.Wait()
		calls := of(g.made(), "renew")
		if len(calls) != 1 || calls[0].at != 70*time.Second || !cmp.Equal(calls[0].values, []string{"found"}) {
			t.Errorf("renewed: %v", calls)
		}
		stop()
	})
}

// TestRenewsManyInFewCalls puts leases together, a thousand messages a call at most.
func TestRenewsManyInFewCalls(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		leases []int
		want   []int
	}{
		{"small ones", []int{1, 1, 1, 1}, []int{4}},
		{"batches", []int{256, 256, 256, 256, 256, 256, 256}, []int{768, 768, 256}},
		{"exactly a thousand", []int{500, 500, 1}, []int{1000, 1}},
		{"one too large by itself", []int{1, 1500, 1}, []int{1, 1500, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig()
				total := 0
				for _, n := range tc.leases {
					g.reserve(n)
					total += n
				}
				var sizes []int
				for _, c := range of(g.run(t, 31*time.Second), "renew") {
					sizes = append(sizes, len(c.values))
					if c.at != 30*time.Second {
						t.Errorf("renewed at %s", c.at)
					}
				}
				if diff := cmp.Diff(tc.want, sizes); diff != "" {
					t.Errorf("handles a call (-want +got):\n%s", diff)
				}
				if n := g.counters.Renewed.Load(); n != int64(total) {
					t.Errorf("%d renewals counted, want %d", n, total)
				}
			})
		})
	}
}

// cancels is a run that notes its end.
type cancels func(cause error)

func (f cancels) Cancel(cause error) { f(cause) }

// TestLostOnesAreMarked: a buffered one will not start, a running one is cancelled, a settled one finds out by
// itself, and the others keep their lease.
func TestLostOnesAreMarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		l := g.reserve(4)
		const buffered, running, settled, held = 0, 1, 2, 3
		var cause error
		l.Items[running].Start(time.Now(), cancels(func(err error) { cause = err }))
		l.Items[settled].Start(time.Now(), nil)
		l.Items[settled].Settle()
		g.renew = func(context.Context, []string) ([]flow.Result, error) {
			return []flow.Result{flow.Late, flow.Late, flow.Late, flow.Done}, nil
		}
		g.run(t, 31*time.Second)
		for i, want := range map[int]flow.State{buffered: flow.Lost, running: flow.Lost, settled: flow.Settled, held: flow.Buffered} {
			if got := l.Items[i].State(); got != want {
				t.Errorf("message %d has state %d, want %d", i, got, want)
			}
		}
		if !errors.Is(cause, flow.ErrLeaseLost) {
			t.Errorf("the handler is cancelled with %v", cause)
		}
		if n := g.counters.Renewed.Load(); n != 1 {
			t.Errorf("%d renewals counted, want 1", n)
		}
		g.logs.want(t)
	})
}

// TestRenewalFaults: an error says nothing about the leases. It is tried again at the common rate, the oldest
// first, and logged once per change (B12, B22).
func TestRenewalFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"transient": errTransient, "permanent": errPermanent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig()
				l := g.reserve(2)
				const from, until = 30 * time.Second, 50 * time.Second
				g.renew = func(_ context.Context, handles []string) ([]flow.Result, error) {
					if time.Since(g.began) < until {
						return nil, fault
					}
					return make([]flow.Result, len(handles)), nil
				}
				stop := g.running(t)
				time.Sleep(10 * time.Second)
				newer := g.reserve(1) // due at 40 s, in the middle of the outage
				time.Sleep(50 * time.Second)
				calls := of(g.made(), "renew")
				stop()
				if calls[0].at != from || len(calls) < 5 || len(calls) > 45 {
					t.Errorf("%d tries from %s", len(calls), calls[0].at)
				}
				for i := 6; i < len(calls); i++ {
					if d := calls[i].at - calls[i-6].at; d <= time.Second {
						t.Errorf("seven tries within %s", d)
					}
				}
				last := calls[len(calls)-1]
				if diff := cmp.Diff([]string{l.Items[0].Handle, l.Items[1].Handle, newer.Items[0].Handle}, last.values); diff != "" {
					t.Errorf("renewed after the outage (-want +got):\n%s", diff)
				}
				for _, r := range []*flow.Reservation{&l.Items[0], &l.Items[1], &newer.Items[0]} {
					if r.State() != flow.Buffered || r.Lease().Expired(time.Now()) {
						t.Errorf("%s: state %d, expired %t", r, r.State(), r.Lease().Expired(time.Now()))
					}
				}
				g.logs.want(t, "renewing leases is held up", "renewing leases works again")
				if g.counters.Renewed.Load() != 3 || g.counters.Lost.Load() != 0 {
					t.Errorf("%d renewed, %d lost", g.counters.Renewed.Load(), g.counters.Lost.Load())
				}
			})
		})
	}
}

// TestNothingSlowDelaysRenewal blocks the sweep and the audit for as long as they like.
func TestNothingSlowDelaysRenewal(t *testing.T) {
	t.Parallel()
	for _, slow := range []string{"sweep", "audit", "adopt"} {
		t.Run(slow, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig()
				release := make(chan struct{})
				g.queue.LastCall = func() time.Time { return g.began }
				g.queue.Adopt = true
				block := func(what string) {
					if what == slow {
						<-release
					}
				}
				g.sweep = func(context.Context) (int, error) { block("sweep"); return 0, nil }
				g.audit = func() (flow.Audit, error) {
					block("audit")
					return flow.Audit{Orphans: 1, InFlight: 1, Values: []string{"x"}}, nil
				}
				g.adopt = func([]string) (int, error) { block("adopt"); return 0, nil }
				stop := g.running(t)
				time.Sleep(200 * time.Second)
				g.made()
				l := g.reserve(1)
				time.Sleep(100 * time.Second)
				calls := g.made()
				if len(of(calls, "renew")) != 3 || l.Expired(time.Now()) {
					t.Errorf("renewed %d times beside a slow %s", len(of(calls, "renew")), slow)
				}
				if n := len(of(calls, slow)); n != 0 {
					t.Errorf("%d calls of %s: it was not slow", n, slow)
				}
				close(release)
				stop()
			})
		})
	}
}

// TestRenewalEndsAtTheHandlersLimit, and then costs nothing more: no call, no spinning.
func TestRenewalEndsAtTheHandlersLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.queue.Book = flow.NewBook(retryAfter, true, 100*time.Second)
		l := g.reserve(1)
		l.Items[0].Start(time.Now(), nil)
		calls := of(g.run(t, 10*time.Minute), "renew")
		want := []time.Duration{30 * time.Second, 60 * time.Second, 90 * time.Second}
		if diff := cmp.Diff(want, times(calls)); diff != "" {
			t.Errorf("renewed (-want +got):\n%s", diff)
		}
	})
}

// TestWithoutRenewal makes no call at all.
func TestWithoutRenewal(t *testing.T) {
	t.Parallel()
	for _, book := range []*flow.Book{flow.NewBook(retryAfter, false, 0), flow.NewBook(0, true, 0)} {
		synctest.Test(t, func(t *testing.T) {
			g := newRig()
			g.queue.Book = book
			g.reserve(1)
			if calls := of(g.run(t, 10*time.Minute), "renew"); len(calls) != 0 {
				t.Errorf("renewed: %v", calls)
			}
		})
	}
}

// TestStopsInTheMiddle ends while a renewal waits for its next try, and while it is away.
func TestStopsInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(ctx context.Context) error{
		"waiting": func(context.Context) error { return errPermanent },
		"away":    func(ctx context.Context) error { <-ctx.Done(); return errTransient },
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newRig()
			g.renew = func(ctx context.Context, _ []string) ([]flow.Result, error) { return nil, answer(ctx) }
			g.reserve(1)
			stop := g.running(t)
			time.Sleep(30*time.Second + 10*time.Millisecond)
			began := time.Now()
			stop()
			if d := time.Since(began); d != 0 {
				t.Errorf("%s: ends after %s", name, d)
			}
		})
	}
}

// TestEachQueueHasItsOwnLoops: one whose store hangs does not touch another's leases.
func TestEachQueueHasItsOwnLoops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs, works := newRig(), newRig()
		hangs.renew = func(ctx context.Context, _ []string) ([]flow.Result, error) { <-ctx.Done(); return nil, errTransient }
		hangs.reserve(1)
		l := works.reserve(1)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Second)
		defer cancel()
		s := New(Config{Queues: []Queue{hangs.queue, works.queue}, Tick: tick, Logger: discard()})
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
		if l.Expired(time.Now()) || len(of(works.made(), "renew")) != 6 {
			t.Errorf("expired %t", l.Expired(time.Now()))
		}
	})
}
