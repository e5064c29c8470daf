package reserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestB21SoloIsTakenWhenWorkersWereLost: not before a call has told so, and it is given back when nothing used it.
func TestB21SoloIsTakenWhenWorkersWereLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		solo := flow.NewSolo()
		g := newRig(func(c *Config) { c.Solo = solo })
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			res := flow.Reserved{Sent: time.Now()}
			switch call {
			case 1, 2:
				res.Lost = 1
			case 3:
				return flow.Reserved{}, errTransient
			}
			return res, nil
		}
		asked := of(g.run(t, 7*time.Second), "reserve")
		for i, want := range []bool{false, false, true, true, true, false} {
			if got := asked[i].req.Solo != nil; got != want {
				t.Errorf("call %d: asks for a message in its last chance: %t, want %t", i, got, want)
			}
		}
		if !solo.Take() {
			t.Error("the right was not given back")
		}
	})
}

// TestB21SoloIsHeldUntilSettled: while a message holds it, no call asks for another.
func TestB21SoloIsHeldUntilSettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		solo := flow.NewSolo()
		g := newRig(func(c *Config) { c.Solo = solo })
		g.answer = func(call int, req flow.ReserveRequest) (flow.Reserved, error) {
			switch {
			case call == 0:
				return flow.Reserved{Sent: time.Now(), Lost: 2, Left: 2, Back: 2}, nil
			case req.Solo != nil:
				res := got(1, 10)
				res.Lost, res.Left, res.Back, res.Solo = 2, 1, 1, true
				res.Lease.Items[0].Recovery = &flow.Recovery{Workers: 2, Solo: req.Solo}
				return res, nil
			}
			return flow.Reserved{Sent: time.Now(), Lost: 2, Left: 1, Back: 1}, nil
		}
		stop := g.running(t)
		time.Sleep(10*time.Second + time.Millisecond)
		events := of(g.happened(), "reserve")
		asked := 0
		for _, e := range events {
			if e.req.Solo != nil {
				asked++
			}
		}
		if asked != 1 || len(events) < 10 || len(events) > 25 {
			t.Errorf("%d calls in ten seconds, %d with the right; want about one in a PollInterval, and one with it", len(events), asked)
		}
		// Settling it wakes the reserver, which asks for the next at once.
		r := <-g.out
		g.cfg.Book.Finish([]flow.Settlement{{Reservation: r}})
		synctest.Wait()
		next := of(g.happened(), "reserve")
		if len(next) == 0 || next[0].req.Solo == nil {
			t.Errorf("after the settlement: %d calls", len(next))
		}
		stop()
	})
}

// TestB21LooksBehindLastChances: what else is in ready is looked for until all of it has come round.
func TestB21LooksBehindLastChances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		solo := flow.NewSolo()
		solo.Take() // another queue has it
		g := newRig(func(c *Config) { c.Solo = solo })
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			if call == 1 {
				res := got(1, 10)
				res.Lost, res.Left = 10, 10
				return res, nil
			}
			return flow.Reserved{Sent: time.Now(), Lost: 10, Left: 10, Back: 4}, nil
		}
		events := of(g.run(t, 100*time.Millisecond), "reserve")
		if len(events) != 5 {
			t.Errorf("%d calls at once, want 5: after the second 4 of 10 come round with each", len(events))
		}
	})
}
