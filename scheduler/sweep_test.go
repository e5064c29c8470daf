package scheduler

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestSweepsForAReserverThatDoesNot: with each of its calls a reserver sweeps by itself.
func TestSweepsForAReserverThatDoesNot(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		last func(g *rig) func() time.Time // when the reserver called last
		want []time.Duration               // sweeps within five ticks and a half
	}{
		{"busy", func(*rig) func() time.Time { return time.Now }, nil},
		{"idle", func(*rig) func() time.Time { return func() time.Time { return time.Now().Add(-tick * 3 / 2) } }, nil},
		{"late", func(*rig) func() time.Time { return func() time.Time { return time.Now().Add(-tick*3/2 - 1) } }, []time.Duration{
			tick, 2 * tick, 3 * tick, 4 * tick, 5 * tick,
		}},
		{"stuck since the start", func(g *rig) func() time.Time { return func() time.Time { return g.began } }, []time.Duration{
			2 * tick, 3 * tick, 4 * tick, 5 * tick,
		}},
		{"never called", func(*rig) func() time.Time { return func() time.Time { return time.Time{} } }, []time.Duration{
			tick, 2 * tick, 3 * tick, 4 * tick, 5 * tick,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig()
				g.queue.LastCall = tc.last(g)
				if diff := cmp.Diff(tc.want, times(of(g.run(t, tick*11/2), "sweep"))); diff != "" {
					t.Errorf("sweeps (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// stuck makes the reserver one that never calls.
func (g *rig) stuck() { g.queue.LastCall = func() time.Time { return time.Time{} } }

// TestSweepRepeatsFullChunks, so that it keeps up with any backlog (B23).
func TestSweepRepeatsFullChunks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.stuck()
		backlog := 5*chunk + 3
		g.sweep = func(context.Context) (int, error) {
			n := min(backlog, chunk)
			backlog -= n
			return n, nil
		}
		sweeps := of(g.run(t, tick*5/2), "sweep")
		want := []time.Duration{tick, tick, tick, tick, tick, tick, 2 * tick}
		if diff := cmp.Diff(want, times(sweeps)); diff != "" {
			t.Errorf("sweeps (-want +got):\n%s", diff)
		}
		if sweeps[0].values[0] != "10" {
			t.Errorf("moves %s at most, want a chunk", sweeps[0].values[0])
		}
		if n := g.counters.Moved.Load(); n != 5*chunk+3 {
			t.Errorf("%d moved are counted", n)
		}
	})
}

// TestSweepStopsAtAnError until the next tick after its pause, and logs each change once.
func TestSweepStopsAtAnError(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"transient": errTransient, "permanent": errPermanent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig()
				g.stuck()
				calls := 0
				g.sweep = func(context.Context) (int, error) {
					calls++
					if since := time.Since(g.began); since > tick+tick/2 && since < 30*tick || calls == 3 {
						return 0, fault
					}
					return map[bool]int{true: chunk}[calls < 3], nil
				}
				sweeps := of(g.run(t, 60*tick), "sweep")
				first := times(sweeps)[:3]
				if diff := cmp.Diff([]time.Duration{tick, tick, tick}, first); diff != "" {
					t.Errorf("first (-want +got):\n%s", diff)
				}
				during := 0
				for i := 3; i < len(sweeps); i++ {
					if sweeps[i].at < 30*tick {
						during++
					}
					if d := sweeps[i].at - sweeps[i-1].at; d > 9*tick {
						t.Errorf("sweep %d comes %s after the one before", i, d)
					}
				}
				if during > 29 {
					t.Errorf("%d sweeps while it failed, want one a tick at most", during)
				}
				g.logs.want(t, "sweeping is held up", "sweeping works again")
				if n := g.counters.Moved.Load(); n != 2*chunk {
					t.Errorf("%d moved are counted", n)
				}
			})
		})
	}
}

// TestRenewalGoesBeforeTheSweep, which would give this process's own overdue messages away (B12).
func TestRenewalGoesBeforeTheSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.stuck()
		g.reserve(1)
		time.Sleep(retryAfter) // the process was frozen
		stop := g.running(t)
		time.Sleep(10 * tick)
		calls := g.made()
		if calls[0].what != "renew" || len(of(calls, "sweep")) == 0 {
			t.Errorf("first: %s", calls[0].what)
		}
		stop()

		g = newRig()
		g.stuck()
		g.renew = func(context.Context, []string) ([]flow.Result, error) { return nil, errTransient }
		g.reserve(1)
		time.Sleep(retryAfter)
		stop = g.running(t)
		time.Sleep(10 * tick)
		if calls := of(g.made(), "sweep"); len(calls) != 0 {
			t.Errorf("%d sweeps beside an overdue lease", len(calls))
		}
		stop()
	})
}

// TestStopLogsNothing: calls cut short by the end are no faults.
func TestStopLogsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.stuck()
		g.sweep = func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, errTransient }
		stop := g.running(t)
		time.Sleep(tick * 3 / 2)
		stop()
		g.logs.want(t)
	})
}
