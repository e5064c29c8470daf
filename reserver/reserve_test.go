package reserver

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestAsksForWhatIsFree takes slots before it asks, a batch at most, and asks no more when there are none.
func TestAsksForWhatIsFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		g.answer = func(_ int, req flow.ReserveRequest) (flow.Reserved, error) { return got(req.Most, 10), nil }
		stop := g.running(t)
		var most []int
		for _, e := range g.happened() {
			most = append(most, e.req.Most)
		}
		if diff := cmp.Diff([]int{4, 4, 2}, most); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
		if len(g.out) != capacity || g.counters.Reserved.Load() != capacity {
			t.Errorf("%d messages given, %d counted", len(g.out), g.counters.Reserved.Load())
		}
		g.slots.Release(0, 3, 30) // three were settled
		if events := g.happened(); len(events) != 1 || events[0].req.Most != 3 {
			t.Errorf("then: %+v", events)
		}
		if n, bytes := g.slots.Free(); n != 0 || bytes != budget-capacity*10 {
			t.Errorf("free: %d slots, %d bytes", n, bytes)
		}
		stop()
	})
}

// TestGivesBackWhatItDidNotGet on every path: less than asked for, nothing, and an error.
func TestGivesBackWhatItDidNotGet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer flow.Reserved
		err    error
		slots  int
		bytes  int64
	}{
		"less than asked for":      {answer: got(3, 100), slots: 3, bytes: 300},
		"one larger than asked":    {answer: got(1, 2<<20), slots: 1, bytes: 2 << 20},
		"nothing":                  {},
		"paused":                   {answer: flow.Reserved{Paused: true}},
		"poison alone":             {answer: flow.Reserved{Poison: []string{"x"}}},
		"an error":                 {err: errTransient},
		"an error that stays":      {err: errPermanent},
		"nothing, but some is due": {answer: flow.Reserved{Moved: 7, Left: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(nil)
				held := make(chan struct{})
				g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
					if call > 0 {
						<-held // with the next slots in hand
						return flow.Reserved{}, nil
					}
					return tc.answer, tc.err
				}
				stop := g.running(t)
				for calls := 0; calls < 2; calls += len(of(g.happened(), "reserve")) {
					time.Sleep(time.Second)
				}
				n, bytes := g.slots.Free()
				if held := min(4, capacity-tc.slots); n != capacity-tc.slots-held || bytes != budget-tc.bytes-1<<20 {
					t.Errorf("free beside a call for %d: %d slots, %d bytes", held, n, bytes)
				}
				close(held)
				stop()
				if n, bytes := g.slots.Free(); n != capacity-tc.slots || bytes != budget-tc.bytes {
					t.Errorf("free in the end: %d slots, %d bytes", n, bytes)
				}
			})
		})
	}
}

// TestMessagesAreLeasedBeforeTheyAreGiven registers the lease, from when the call was sent, and gives the
// messages in order.
func TestMessagesAreLeasedBeforeTheyAreGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := make(chan *flow.Reservation) // unbuffered, to look between two messages
		g := newRig(nil)
		g.out = out
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			if call > 0 {
				return flow.Reserved{}, nil
			}
			res := got(3, 10)
			time.Sleep(7 * time.Second) // the reply takes long; the lease runs from the call
			return res, nil
		}
		stop := g.running(t)
		for i := range 3 {
			r := <-out
			if r.Order != i {
				t.Errorf("message %d comes as number %d", r.Order, i)
			}
			if left, ok := r.Lease().Remaining(time.Now()); !ok || left != 82*time.Second {
				t.Errorf("%s of the lease remain, want 82 s", left)
			}
		}
		if due, wait := g.cfg.Book.Due(time.Now()); len(due) != 0 || wait != 23*time.Second {
			t.Errorf("due %d, wait %s", len(due), wait)
		}
		stop()
	})
}

// TestPoisonIsReported in order, and counts as no message.
func TestPoisonIsReported(t *testing.T) { // Z3
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			if call > 0 {
				return flow.Reserved{}, nil
			}
			res := got(1, 10)
			res.Poison = []string{"hello", ""}
			return res, nil
		}
		g.run(t, time.Second)
		if diff := cmp.Diff([]string{"hello", ""}, g.poison); diff != "" || g.counters.Reserved.Load() != 1 {
			t.Errorf("%d messages; reported (-want +got):\n%s", g.counters.Reserved.Load(), diff)
		}
	})
}

// TestWaitsOnlyWhenThereIsNothing: what was moved may be there by now, and what is left surely is.
func TestWaitsOnlyWhenThereIsNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer flow.Reserved
		want   string
	}{
		"empty":            {flow.Reserved{}, "reserve, wait, reserve"},
		"some left":        {flow.Reserved{Left: 1}, "reserve, reserve, wait"},
		"some moved":       {flow.Reserved{Moved: 1}, "reserve, reserve, wait"},
		"all taken":        {got(2, 10), "reserve, reserve, wait"},
		"poison, no more":  {flow.Reserved{Poison: []string{"x"}}, "reserve, wait, reserve"},
		"poison and more":  {flow.Reserved{Poison: []string{"x"}, Left: 1}, "reserve, reserve, wait"},
		"paused, not read": {flow.Reserved{Paused: true, Left: 5}, "reserve, reserve, wait"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(nil)
				g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
					if call > 0 {
						return flow.Reserved{}, nil
					}
					return tc.answer, nil
				}
				events := g.run(t, 3*time.Second)
				if got := names(events[:3]); got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
				if n, _ := g.slots.Free(); n != capacity-len(g.out) {
					t.Errorf("%d slots are free", n)
				}
			})
		})
	}
}

// TestWaitingHoldsNoSlots, so that an idle queue's share can be lent.
func TestWaitingHoldsNoSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		free := -1
		g.waiting = func(ctx context.Context) (int, error) {
			free, _ = g.slots.Free()
			<-ctx.Done()
			return 0, nil
		}
		g.run(t, time.Second)
		if free != capacity {
			t.Errorf("%d slots are free while it waits, want all %d", free, capacity)
		}
	})
}

// TestPausedQueueIsPolled without blocking on it, about once per interval.
func TestPausedQueueIsPolled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(func(cfg *Config) { cfg.PollInterval = 2 * time.Second })
		g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) { return flow.Reserved{Paused: true}, nil }
		events := g.run(t, time.Minute)
		checkPolls(t, events, 2*time.Second)
		if g.LastCall().Before(g.began.Add(58 * time.Second)) {
			t.Errorf("the scheduler is told of %s as the last call", g.LastCall().Sub(g.began))
		}
	})
}

// TestPollsWhereItCannotBlock: the server is full, read-only, or forbids the command.
func TestPollsWhereItCannotBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		g.waiting = func(context.Context) (int, error) { return 0, errPermanent }
		events := g.run(t, time.Minute)
		checkPolls(t, of(events, "reserve"), time.Second)
		if a, b := len(of(events, "reserve")), len(of(events, "wait")); a-b > 1 {
			t.Errorf("%d reserves and %d waits", a, b)
		}
	})
}

// checkPolls checks that calls are spread between half an interval and a whole one.
func checkPolls(t *testing.T, events []event, interval time.Duration) {
	t.Helper()
	polls := of(events, "reserve")
	if len(of(events, "wait")) != 0 || len(polls) < 20 {
		t.Fatalf("%d polls: %.200s", len(polls), names(events))
	}
	var pauses []time.Duration
	for i := 1; i < len(polls); i++ {
		pauses = append(pauses, polls[i].at-polls[i-1].at)
	}
	slices.Sort(pauses)
	if low, high := pauses[0], pauses[len(pauses)-1]; low < interval/2 || high >= interval || low == high {
		t.Errorf("pauses from %s to %s, want them spread over %s to %s", low, high, interval/2, interval)
	}
}

// TestMigrationLimit passes the user's bound on, or the script's.
func TestMigrationLimit(t *testing.T) { // Z2
	t.Parallel()
	for batch, want := range map[int]int{0: 1000, 1: 1, 999: 999, 1000: 1000, 5000: 1000} {
		synctest.Test(t, func(t *testing.T) {
			g := newRig(func(cfg *Config) { cfg.MigrationBatch = batch })
			ctx, cancel := context.WithCancel(t.Context())
			g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
				if call == 1 {
					cancel()
				}
				return flow.Reserved{Moved: 3}, nil
			}
			if err := g.Run(ctx); err != nil {
				t.Fatal(err)
			}
			for _, e := range of(g.happened(), "reserve") {
				if e.req.Migration != want {
					t.Errorf("batch %d: asked for %d, want %d", batch, e.req.Migration, want)
				}
			}
			if n := g.counters.Moved.Load(); n != 6 {
				t.Errorf("%d moved", n)
			}
		})
	}
}

// TestSizeEstimate guesses how many messages fit the bytes: carefully before the first is seen, then after
// what came.
func TestSizeEstimate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		bytes int64
		size  int
		first int // FirstPop of the first call
		last  int // after many messages of the size
	}{
		{"small ones", 1 << 20, 100, 4, 4},
		{"large ones", 1 << 20, 400 << 10, 4, 2},
		{"one does not fit", 100 << 10, 200 << 10, 1, 1},
		{"a small budget", 65 << 10, 1, 1, 4},
		{"empty bodies", 1 << 20, 0, 4, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				g := newRig(func(cfg *Config) { cfg.Bytes = tc.bytes })
				g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
					for len(g.out) > 0 { // all before are settled
						r := <-g.out
						g.slots.Release(0, 1, int64(r.Size()))
					}
					if call == 40 {
						cancel()
					}
					return got(1, tc.size), nil
				}
				if err := g.Run(ctx); err != nil {
					t.Fatal(err)
				}
				calls := of(g.happened(), "reserve")
				if first := calls[0].req; first.FirstPop != tc.first || first.Bytes != tc.bytes {
					t.Errorf("first: %+v, want %d at first and %d bytes", first, tc.first, tc.bytes)
				}
				if last := calls[len(calls)-1].req; last.FirstPop != tc.last {
					t.Errorf("last: %+v, want %d at first", last, tc.last)
				}
			})
		})
	}
}
