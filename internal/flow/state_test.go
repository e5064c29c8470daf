package flow

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// in brings a new reservation into a state.
func in(t *testing.T, s State) *Reservation {
	t.Helper()
	r := &made(1).Items[0]
	ok := true
	switch s {
	case Buffered:
	case Running:
		ok = r.Start(time.Now(), nil)
	case Settled:
		ok = r.Settle()
	case Lost:
		ok = r.Lose()
	}
	if !ok || r.State() != s {
		t.Fatalf("state %d cannot be reached from buffered", s)
	}
	return r
}

func TestStateMovesForwardOnly(t *testing.T) {
	t.Parallel()
	start := func(r *Reservation) bool { return r.Start(time.Now(), nil) }
	settle, lose := (*Reservation).Settle, (*Reservation).Lose
	for _, tc := range []struct {
		name string
		from State
		do   func(*Reservation) bool
		ok   bool
		to   State
	}{
		{"a buffered one starts", Buffered, start, true, Running},
		{"a buffered one is settled", Buffered, settle, true, Settled},
		{"a buffered one is lost", Buffered, lose, true, Lost},
		{"a running one starts no second time", Running, start, false, Running},
		{"a running one is settled", Running, settle, true, Settled},
		{"a running one is lost", Running, lose, true, Lost},
		{"a settled one does not start", Settled, start, false, Settled},
		{"a settled one is settled no second time", Settled, settle, false, Settled},
		{"a settled one is not lost", Settled, lose, false, Settled},
		{"a lost one does not start", Lost, start, false, Lost},
		{"a lost one is not settled", Lost, settle, false, Lost},
		{"a lost one is lost no second time", Lost, lose, false, Lost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := in(t, tc.from)
			if ok := tc.do(r); ok != tc.ok || r.State() != tc.to {
				t.Errorf("got %t and state %d, want %t and %d", ok, r.State(), tc.ok, tc.to)
			}
		})
	}
}

// TestOneWinner lets many goroutines start, settle and lose one reservation at once: never both, never
// neither.
func TestOneWinner(t *testing.T) {
	t.Parallel()
	for range 2000 {
		r := &made(1).Items[0]
		var started, settled, lost, cancelled atomic.Int32
		var gate, done sync.WaitGroup
		gate.Add(1)
		start := func() {
			if r.Start(time.Now(), cancels(func(error) { cancelled.Add(1) })) {
				started.Add(1)
			}
		}
		settle := func() {
			if r.Settle() {
				settled.Add(1)
			}
		}
		lose := func() {
			if r.Lose() {
				lost.Add(1)
			}
		}
		// A reservation is in one worker's hands; the others may come from anywhere.
		for _, try := range []func(){start, settle, settle, settle, lose, lose, lose} {
			done.Go(func() { gate.Wait(); try() })
		}
		gate.Done()
		done.Wait()

		if ends := settled.Load() + lost.Load(); ends != 1 || started.Load() > 1 {
			t.Fatalf("started %d times, settled %d times, lost %d times", started.Load(), settled.Load(), lost.Load())
		}
		want := Settled
		if lost.Load() == 1 {
			want = Lost
		}
		if r.State() != want {
			t.Fatalf("state %d, want %d", r.State(), want)
		}
		if n := cancelled.Load(); n != lost.Load()*started.Load() {
			t.Fatalf("cancelled %d times; started %d times, lost %d times", n, started.Load(), lost.Load())
		}
	}
}

// cancels is a run that notes its end.
type cancels func(cause error)

func (f cancels) Cancel(cause error) { f(cause) }

func TestLossCancelsTheRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		do   func(r *Reservation, run Canceler)
		want int
	}{
		{"started, then lost", func(r *Reservation, c Canceler) { r.Start(epoch, c); r.Lose() }, 1},
		{"lost, then started", func(r *Reservation, c Canceler) { r.Lose(); r.Start(epoch, c) }, 0},
		{"lost twice", func(r *Reservation, c Canceler) { r.Start(epoch, c); r.Lose(); r.Lose() }, 1},
		{"settled, then lost", func(r *Reservation, c Canceler) { r.Start(epoch, c); r.Settle(); r.Lose() }, 0},
		{"never lost", func(r *Reservation, c Canceler) { r.Start(epoch, c) }, 0},
		{"nobody to tell", func(r *Reservation, _ Canceler) { r.Start(epoch, nil); r.Lose() }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			tc.do(in(t, Buffered), cancels(func(cause error) {
				calls++
				if !errors.Is(cause, ErrLeaseLost) {
					t.Errorf("cancelled with %v", cause)
				}
			}))
			if calls != tc.want {
				t.Errorf("cancelled %d times, want %d", calls, tc.want)
			}
		})
	}
}

// TestLeaseClockInTheFakePast runs where the time lies before the start of the process, as it does in every
// bubble of testing/synctest: leases must still run out there.
func TestLeaseClockInTheFakePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, l := NewBook(10*time.Second, true, time.Second), made(1)
		b.Add(l, time.Now())
		if !time.Now().Before(epoch) {
			t.Fatal("the bubble's time is not before the process")
		}
		if l.Expired(time.Now().Add(9*time.Second-1)) || !l.Expired(time.Now().Add(9*time.Second)) {
			t.Error("the lease does not run out after 9 s")
		}
		l.Items[0].Start(time.Now(), nil)
		if held := b.Renewable(l, time.Now().Add(2*time.Second), nil); len(held) != 0 {
			t.Error("a handler beyond its limit is renewed")
		}
	})
}

// meet runs two functions on many reservations so that both meet on each at the same moment, and check on each
// afterwards. A busy machine gets through fewer of them.
func meet(t *testing.T, from State, left, right, check func(r *Reservation)) {
	t.Helper()
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
		all := make([]*Reservation, 1000)
		for i := range all {
			all[i] = in(t, from)
		}
		var arrived [2]atomic.Int64
		var done sync.WaitGroup
		for side, f := range []func(*Reservation){left, right} {
			done.Go(func() {
				for i, r := range all {
					arrived[side].Store(int64(i))
					for n := 0; arrived[1-side].Load() < int64(i); n++ {
						if n > 1000 {
							runtime.Gosched() // the other may have no processor
						}
					}
					for n := range i % 64 { // each side comes later by a little, now by more, now by less
						if (i/64+side)%2 == 0 {
							r.begun.Store(int64(n))
						}
					}
					f(r)
				}
			})
		}
		done.Wait()
		for _, r := range all {
			check(r)
		}
	}
}

// TestSettleMeetsStart: whichever comes first, the reservation is settled. A hand back that gave up because of
// a start would free the slot of a running message.
func TestSettleMeetsStart(t *testing.T) {
	var refused atomic.Int64
	meet(t, Buffered, func(r *Reservation) { r.Start(epoch, nil) }, func(r *Reservation) {
		if !r.Settle() {
			refused.Add(1)
		}
	}, func(r *Reservation) {
		if r.State() != Settled || refused.Load() != 0 {
			t.Fatalf("state %d, %d settlements were refused", r.State(), refused.Load())
		}
	})
}

// TestStartMeetsLose: a run that began is cancelled when its lease is lost, once; one that did not is not.
func TestStartMeetsLose(t *testing.T) {
	var calls, started atomic.Int64
	run := cancels(func(error) { calls.Add(1) })
	meet(t, Buffered, func(r *Reservation) { r.Lose() }, func(r *Reservation) {
		if r.Start(epoch, run) {
			started.Add(1)
		}
	}, func(r *Reservation) {
		if r.State() != Lost {
			r.Lose()
		}
	})
	if calls.Load() != started.Load() {
		t.Fatalf("%d runs began and were lost, %d were cancelled", started.Load(), calls.Load())
	}
}
