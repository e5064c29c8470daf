package reserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestPulse: whatever a reserver waits for, it is alive, unless a call does not end.
func TestPulse(t *testing.T) {
	t.Parallel()
	long := func(c *Config) { c.PollInterval = 10 * time.Minute }
	for name, tc := range map[string]struct {
		config func(*Config)
		set    func(g *rig)
		least  time.Duration // the longest turn in ten minutes, from
		most   time.Duration // to
	}{
		"idle":        {nil, func(*rig) {}, 0, 2 * time.Second},
		"paused here": {nil, func(g *rig) { g.cfg.Pause.SetHere(true) }, 0, time.Second},
		"paused": {long, func(g *rig) {
			g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) { return flow.Reserved{Paused: true}, nil }
		}, 0, time.Second},
		"blocking is refused": {long, func(g *rig) {
			g.waiting = func(context.Context) (int, error) { return 0, errPermanent }
		}, 0, time.Second},
		"full": {nil, func(g *rig) { _, _, _ = g.slots.Acquire(t.Context(), 0, capacity, budget) }, 0, time.Second},
		"its leases are not renewed": {nil, func(g *rig) {
			g.cfg.Book.Add(flow.NewLease(0, 1), time.Now().Add(-time.Hour))
		}, 0, time.Second},
		"redis is away": {nil, func(g *rig) {
			g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) { return flow.Reserved{}, errTransient }
		}, 0, time.Second},
		"redis refuses": {nil, func(g *rig) {
			g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) { return flow.Reserved{}, errPermanent }
		}, 0, 8 * time.Second},
		"replies are lost": {nil, func(g *rig) {
			g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) {
				return flow.Reserved{Call: "c", Sent: time.Now()}, errAmbiguous
			}
			g.found = func(int) (flow.Reserved, error) { return flow.Reserved{}, errTransient }
		}, 0, time.Second},
		"a call does not end": {nil, func(g *rig) {
			g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) {
				time.Sleep(9 * time.Minute) // the bubble's clock
				return flow.Reserved{}, errTransient
			}
		}, 8 * time.Minute, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(tc.config)
				tc.set(g)
				stop := g.running(t)
				longest := time.Duration(0)
				for range 6000 {
					time.Sleep(100 * time.Millisecond) // the bubble's clock
					longest = max(longest, g.Pulse().Turn(time.Now()))
				}
				if longest < tc.least || longest > tc.most {
					t.Errorf("the longest turn took %s, want %s to %s", longest, tc.least, tc.most)
				}
				stop()
				if turn := g.Pulse().Turn(time.Now()); turn != 0 {
					t.Errorf("a turn of %s after its end", turn)
				}
			})
		})
	}
}
