package slots

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestSingleQueueGetsEverything(t *testing.T) {
	t.Parallel()
	p := New(100, plenty, []int{7})
	if n := take(t, p, 0, 1000); n != 100 {
		t.Errorf("got %d of 100", n)
	}
	p.Release(0, 40, 0)
	if n := take(t, p, 0, 30); n != 30 {
		t.Errorf("got %d, asked for 30", n)
	}
	if n := take(t, p, 0, 30); n != 10 {
		t.Errorf("got %d, 10 were left", n)
	}
}

// TestIdleSharesAreLent lets one queue borrow everything but an eighth of the others' shares, which stays
// ready for their first messages.
func TestIdleSharesAreLent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		n       int
		weights []int
		first   int   // what queue 0 gets of everything
		others  []int // what is left for each other, with nothing freed
	}{
		{"equal weights", 64, []int{1, 1}, 60, []int{4}},
		{"three queues", 96, []int{1, 1, 1}, 88, []int{4, 4}},
		{"a heavy queue keeps more", 64, []int{1, 3}, 58, []int{6}},
		{"a heavy queue borrows from a light one", 64, []int{3, 1}, 62, []int{2}},
		{"one slot each", 3, []int{1, 1, 1}, 1, []int{1, 1}},
		{"small shares keep one", 6, []int{4, 1, 1}, 4, []int{1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := New(tc.n, plenty, tc.weights)
			if n := take(t, p, 0, tc.n); n != tc.first {
				t.Errorf("queue 0 gets %d, want %d", n, tc.first)
			}
			for i, want := range tc.others {
				if n := take(t, p, i+1, want); n != want {
					t.Errorf("queue %d gets %d, want %d", i+1, n, want)
				}
			}
			if free, _ := p.Free(); free != 0 {
				t.Errorf("%d slots are left", free)
			}
		})
	}
}

// TestSharesFollowWeights fills a pool while all queues want more than there is.
func TestSharesFollowWeights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := New(100, plenty, []int{1, 3, 6})
		hog := take(t, p, 2, 100) // queue 2 holds all but the floors when the others come
		take(t, p, 0, 1)
		take(t, p, 1, 3)
		want := []int{10, 30, 60}
		waiting := []*asked{ask(ctx, p, 0, 100, 1), ask(ctx, p, 1, 100, 1), ask(ctx, p, 2, 100, 1)}
		for range hog { // one message after the other ends, and each queue wants the slot
			p.Release(2, 1, 0)
			for q, a := range waiting {
				if a.got() > 0 {
					waiting[q] = ask(ctx, p, q, 100, 1)
				}
			}
		}
		for q := range want {
			if used := p.queues[q].used; used < want[q] && q != 2 || q == 2 && used > want[q] {
				t.Errorf("queue %d holds %d of its share of %d", q, used, want[q])
			}
		}
		cancel()
		synctest.Wait()
	})
}

// TestBelowItsShareGoesFirst frees one slot for which a queue above its share waits as well.
func TestBelowItsShareGoesFirst(t *testing.T) {
	t.Parallel()
	for _, firstWaiter := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p := New(16, plenty, []int{1, 1})
			take(t, p, 0, 15) // its share of 8 and 7 lent
			take(t, p, 1, 1)
			waiting := map[int]*asked{}
			for _, q := range []int{firstWaiter, 1 - firstWaiter} {
				waiting[q] = ask(ctx, p, q, 4, 1)
				synctest.Wait()
			}
			for range 7 {
				p.Release(0, 1, 0)
				if n := waiting[1].got(); n != 1 {
					t.Fatalf("queue 1 gets %d of the freed slot", n)
				}
				if n := waiting[0].got(); n != 0 {
					t.Fatal("queue 0 borrows while queue 1 is below its share")
				}
				waiting[1] = ask(ctx, p, 1, 4, 1)
				synctest.Wait()
			}
			p.Release(1, 1, 0) // both at their shares: whoever comes
			cancel()
			synctest.Wait()
		})
	}
}

// TestNobodyTakesMoreThanItsShareFromThoseBelowTheirs frees many slots for which two queues wait, both with
// some of their shares.
func TestNobodyTakesMoreThanItsShareFromThoseBelowTheirs(t *testing.T) {
	t.Parallel()
	for range 10 { // the order in which the two wake up is not ours
		synctest.Test(t, func(t *testing.T) {
			p := New(24, plenty, []int{1, 1, 1})
			take(t, p, 0, 22)
			take(t, p, 1, 1)
			take(t, p, 2, 1)
			a, b := ask(t.Context(), p, 1, 24, 1), ask(t.Context(), p, 2, 24, 1)
			synctest.Wait()
			p.Release(0, 14, 0)
			if a.got() != 7 || b.got() != 7 {
				t.Fatalf("%d and %d, want 7 each", a.got(), b.got())
			}
		})
	}
}

// TestWhatAServedQueueLeavesIsLentAtOnce holds that no slot lies idle until the next Release: neither when the
// queue below its share took fewer than there were, nor when it went away at that moment.
func TestWhatAServedQueueLeavesIsLentAtOnce(t *testing.T) {
	t.Parallel()
	for i := range 40 { // the order in which the two wake up is not ours
		goes := i%2 == 0
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := New(16, 1, []int{1, 1})
			take(t, p, 0, 15)
			if _, _, err := p.Acquire(ctx, 1, 1, 1); err != nil { // and the only byte
				t.Fatal(err)
			}
			above := ask(t.Context(), p, 0, 16, 1)
			synctest.Wait()
			below := ask(ctx, p, 1, 2, 1)
			p.Release(0, 7, 0) // slots, and still no byte
			if above.got() != 0 || below.got() != 0 {
				t.Fatal("slots without a byte")
			}
			p.Release(1, 0, 2) // bytes for two calls
			if goes {
				cancel()
			}
			if above.got() == 0 {
				t.Fatal("queue 0 waits beside free slots")
			}
			if n := below.got(); n != 2 && !goes {
				t.Fatalf("queue 1 gets %d, want 2", n)
			}
		})
	}
}

func TestByteBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(10, 1000, []int{1})
		n, bytes, err := p.Acquire(t.Context(), 0, 4, 300)
		if n != 4 || bytes != 300 || err != nil {
			t.Fatalf("got %d slots, %d bytes, %v", n, bytes, err)
		}
		if _, bytes, _ = p.Acquire(t.Context(), 0, 1, 5000); bytes != 700 {
			t.Fatalf("got %d bytes, 700 were left", bytes)
		}
		a := ask(t.Context(), p, 0, 1, 1)
		if a.got() != 0 {
			t.Fatal("slots without a byte")
		}
		// The one message of the second call was larger than all that was left: the overshoot is owed.
		p.Release(0, 0, -500)
		if free, owed := p.Free(); free != 5 || owed != -500 || a.got() != 0 {
			t.Fatalf("free: %d slots, %d bytes; a waiter got %d", free, owed, a.got())
		}
		p.Release(0, 4, 500)
		if a.got() != 0 {
			t.Fatal("slots without a byte")
		}
		p.Release(0, 1, 1)
		if a.got() != 1 || a.bytes != 1 {
			t.Fatalf("got %d slots and %d bytes of one byte", a.got(), a.bytes)
		}
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("the pool stops")
		ctx, cancel := context.WithCancelCause(t.Context())
		p := New(1, plenty, []int{1})
		take(t, p, 0, 1)
		a := ask(ctx, p, 0, 1, 1)
		if a.got() != 0 {
			t.Fatal("a slot that is not there")
		}
		cancel(why)
		if a.got() != 0 || !errors.Is(a.err, why) {
			t.Errorf("got %d and %v, want the context's cause", a.n, a.err)
		}
		p.Release(0, 1, 0)
		if free, _ := p.Free(); free != 1 {
			t.Errorf("%d free, want the one nobody waits for any more", free)
		}
	})
}

// TestReleasingNothingWakesNobody keeps the many empty releases of a busy reserver cheap.
func TestReleasingNothingWakesNobody(t *testing.T) {
	t.Parallel()
	p := New(1, plenty, []int{1})
	wake := p.wake
	p.Release(0, 0, 0)
	if p.wake != wake {
		t.Error("waiters are woken")
	}
}

// TestDemandKeepsOthersFromBorrowing: a queue that is known to have more keeps its share free while its reserver
// is away with a call; without demand the rest is lent.
func TestDemandKeepsOthersFromBorrowing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(16, plenty, []int{3, 1}) // shares of 12 and 4
		p.Demand(0, true)
		take(t, p, 0, 4)
		take(t, p, 1, 4)
		ctx, cancel := context.WithCancel(t.Context())
		more := ask(ctx, p, 1, 8, 1)
		synctest.Wait()
		if n := more.got(); n != 0 {
			t.Errorf("queue 1 borrows %d beside a queue with demand below its share", n)
		}
		p.Demand(0, false)
		synctest.Wait()
		if n := more.got(); n == 0 {
			t.Error("queue 1 gets nothing although queue 0 has no more")
		}
		cancel()
		synctest.Wait()
	})
}
