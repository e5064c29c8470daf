package scheduler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A reserver that does not call cannot hear of a pause; then it is asked for, but only while something waits that would
// have to go back.
func TestAsksForAPause(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		unstarted int
		calls     bool // the reserver does
		paused    bool // in Redis
		here      bool
		want      string
	}{
		"nothing waits":                  {0, false, true, true, ""},
		"the reserver asks":              {3, true, true, false, ""},
		"not paused":                     {3, false, false, false, "paused? paused? paused? paused? paused? "},
		"paused":                         {3, false, true, false, "paused? hand back hand back hand back hand back hand back hand back "},
		"paused in this process":         {3, false, false, true, "hand back hand back hand back hand back hand back "},
		"here, while the reserver calls": {3, true, false, true, "hand back hand back hand back hand back hand back "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig()
				g.unstarted = tc.unstarted
				if !tc.calls {
					g.stuck()
				}
				g.pause = func() (bool, error) { return tc.paused, nil }
				g.queue.Pause.SetHere(tc.here)
				got := ""
				for _, c := range g.run(t, 2*tick+tick/4) {
					if c.what == "paused?" || c.what == "hand back" {
						got += c.what + " "
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A pause is obeyed at once when somebody tells of it.
func TestAPauseDoesNotWaitForTheTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.unstarted = 1
		stop := g.running(t)
		time.Sleep(tick / 4)
		g.queue.Pause.SetEverywhere(true)
		if got := of(g.made(), "hand back"); len(got) != 1 || got[0].at != tick/4 {
			t.Errorf("handed back: %v", got)
		}
		stop()
	})
}

// A pause right after a reserve, of which nobody tells, is obeyed within a tick.
func TestAPauseIsObeyedWithinATick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.unstarted = 1
		g.queue.LastCall = func() time.Time { return g.began.Add(tick / 10) } // the last one before the pool was full
		g.pause = func() (bool, error) { return time.Since(g.began) > tick/10, nil }
		got := of(g.run(t, tick+tick/10), "hand back")
		if len(got) == 0 || got[0].at > tick+tick/10 {
			t.Errorf("handed back: %v", got)
		}
	})
}

// One that cannot be asked is asked again, and told once.
func TestAPauseThatCannotBeAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.stuck()
		g.unstarted = 1
		failures := 3
		g.pause = func() (bool, error) {
			if failures--; failures >= 0 {
				return false, errTransient
			}
			return false, nil
		}
		g.run(t, 5*tick)
		g.logs.Want(t, "looking for a pause is held up", "looking for a pause works again")
	})
}
