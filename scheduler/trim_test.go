package scheduler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// limited makes the rig one with a limit.
func (g *rig) limited() { g.queue.Limits = flow.DeadLetterLimits{Count: 5} }

// TestB42TrimsWhenThereIsAReason: at the start, soon after dead letters were added, else once per audit.
func TestB42TrimsWhenThereIsAReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.limited()
		stop := g.running(t)
		time.Sleep(5*time.Second + tick/20)
		g.counters.DeadLettered.Add(3)
		time.Sleep(40 * time.Second)
		calls := times(of(g.made(), "trim"))
		stop()
		again := 5*time.Second + tick/trimPerTick
		want := []time.Duration{0, again, again + auditEvery}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("trims (-want +got):\n%s", diff)
		}
	})
}

// TestB42CostsNothingWhenOff: without a limit nothing is trimmed.
func TestB42CostsNothingWhenOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		stop := g.running(t)
		g.counters.DeadLettered.Add(3)
		time.Sleep(time.Hour)
		stop()
		if calls := of(g.made(), "trim"); len(calls) > 0 {
			t.Errorf("%d trims without a limit", len(calls))
		}
	})
}

// TestB42TrimRepeatsAndCounts: a call discards some; what all of them discarded is counted, and logged once a minute.
func TestB42TrimRepeatsAndCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.limited()
		left := 2500
		g.trim = func() (int, bool, error) {
			n := min(left, 1000)
			left -= n
			return n, n == 1000, nil
		}
		stop := g.running(t)
		time.Sleep(time.Second)
		if n := g.counters.Discarded.Load(); n != 2500 {
			t.Errorf("%d are counted", n)
		}
		if n := len(of(g.made(), "trim")); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
		g.logs.want(t, "discarded=2500")
		for range 3 {
			left = 7
			g.counters.DeadLettered.Add(7)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		g.logs.want(t, "discarded=2500")
		time.Sleep(time.Minute)
		g.logs.want(t, "discarded=2500", "discarded=21")
		left = 1
		g.counters.DeadLettered.Add(1)
		stop() // what the last settlements have added
		g.logs.want(t, "discarded=2500", "discarded=21", "discarded=1")
		if n := g.counters.Discarded.Load(); n != 2522 {
			t.Errorf("%d are counted at the end, want 2,522", n)
		}
	})
}

// TestB42TrimFailures are logged once, and tried again with the next dead letter or audit; they delay no stop.
func TestB42TrimFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.limited()
		g.trim = func() (int, bool, error) { return 0, true, errPermanent }
		stop := g.running(t)
		time.Sleep(auditEvery * 5 / 2)
		if diff := cmp.Diff([]time.Duration{0, auditEvery, 2 * auditEvery}, times(of(g.made(), "trim"))); diff != "" {
			t.Errorf("trims (-want +got):\n%s", diff)
		}
		g.logs.want(t, "trimming dead letters is held up")
		synctest.Wait()
		g.trim = func() (int, bool, error) { return 0, false, nil }
		g.counters.DeadLettered.Add(1)
		time.Sleep(tick)
		g.logs.want(t, "trimming dead letters is held up", "trimming dead letters works again")
		synctest.Wait()
		g.trim = func() (int, bool, error) { return 0, true, errTransient }
		g.counters.DeadLettered.Add(1)
		began := time.Now()
		stop()
		if d := time.Since(began); d > lastTrim {
			t.Errorf("the stop took %v", d)
		}
	})
}
