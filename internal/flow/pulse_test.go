package flow

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPulse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p Pulse
		want := func(turn time.Duration) {
			t.Helper()
			if got := p.Turn(time.Now()); got != turn {
				t.Errorf("turn of %s, want %s", got, turn)
			}
		}
		want(0)
		time.Sleep(time.Hour)
		want(0)
		p.Beat()
		want(1)
		time.Sleep(time.Minute)
		want(time.Minute)
		p.Beat()
		time.Sleep(time.Second)
		want(time.Second)
		p.Rest()
		time.Sleep(time.Second)
		want(0)
	})
}

// TestAnswered: an outage runs from the first call that fails to the first that is answered, and counts once.
func TestAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c Counters
		for _, step := range []struct {
			answered   bool
			away       time.Duration
			reconnects int64
		}{
			{true, 0, 0}, {false, time.Second, 0}, {false, 2 * time.Second, 0}, {true, 0, 1}, {true, 0, 1}, {false, time.Second, 1}, {true, 0, 2},
		} {
			c.Answered(step.answered)
			time.Sleep(time.Second)
			if away, n := c.Away.Turn(time.Now()), c.Reconnects.Load(); away != step.away || n != step.reconnects {
				t.Errorf("away for %s, %d reconnects, want %+v", away, n, step)
			}
		}
	})
}

func TestDeadLettersAreCountedByReason(t *testing.T) {
	t.Parallel()
	var c Counters
	for _, text := range []string{"failed", "unknown_urn", "poison", "unknown_urn", "what else"} {
		c.DeadLetter(ReasonOf(text))
	}
	got := [4]int64{c.DeadLettered.Load(), c.DeadBy[Failed].Load(), c.DeadBy[UnknownURN].Load(), c.DeadBy[Poison].Load()}
	if want := [4]int64{5, 2, 2, 1}; got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
}
