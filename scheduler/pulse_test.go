package scheduler

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestPulses: only a loop whose call does not end has a long turn, and only that one.
func TestPulses(t *testing.T) {
	t.Parallel()
	const hang = 9 * time.Minute
	for name, tc := range map[string]struct {
		set  func(g *rig)
		long string // the loop with a turn of more than 8 minutes
	}{
		"idle":            {func(*rig) {}, ""},
		"idle, long tick": {func(*rig) {}, ""},
		"busy":            {func(g *rig) { g.reserve(3); g.stuck(); g.unstarted = 1 }, ""},
		"redis is away": {func(g *rig) {
			g.reserve(3)
			g.stuck()
			g.unstarted = 1
			g.renew = func(context.Context, []string) ([]flow.Result, error) { return nil, errTransient }
			g.sweep = func(context.Context) (int, error) { return 0, errTransient }
			g.pause = func() (bool, error) { return false, errTransient }
			g.audit = func() (flow.Audit, error) { return flow.Audit{}, errTransient }
		}, ""},
		"a renewal does not end": {func(g *rig) {
			g.reserve(3)
			g.renew = func(context.Context, []string) ([]flow.Result, error) { time.Sleep(hang); return nil, errTransient }
		}, "renewer"},
		"a sweep does not end": {func(g *rig) {
			g.stuck()
			g.sweep = func(context.Context) (int, error) { time.Sleep(hang); return 0, nil }
		}, "sweeper"},
		"an audit does not end": {func(g *rig) {
			g.audit = func() (flow.Audit, error) { time.Sleep(hang); return flow.Audit{}, nil }
		}, "sweeper"},
		"a look for a pause does not end": {func(g *rig) {
			g.stuck()
			g.unstarted = 1
			g.pause = func() (bool, error) { time.Sleep(hang); return false, nil }
		}, "pauser"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig()
				tc.set(g)
				tick := tick
				if strings.Contains(name, "long tick") {
					tick = 4 * time.Minute
				}
				s := New(Config{Queues: []Queue{g.queue}, Tick: tick, Logger: slog.New(g.logs)})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				loops := map[string]*flow.Pulse{
					"renewer": &s.Pulses(0).Renewer, "sweeper": &s.Pulses(0).Sweeper, "pauser": &s.Pulses(0).Pauser,
				}
				longest := map[string]time.Duration{}
				for range 6000 {
					time.Sleep(100 * time.Millisecond) // the bubble's clock
					for name, p := range loops {
						longest[name] = max(longest[name], p.Turn(time.Now()))
					}
				}
				for name, turn := range longest {
					if long := turn > hang-time.Minute; long != (name == tc.long) || !long && turn > 2*time.Second {
						t.Errorf("the longest turn of the %s took %s", name, turn)
					}
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				for name, p := range loops {
					if p.Turn(time.Now()) != 0 {
						t.Errorf("the %s turns after its end", name)
					}
				}
			})
		})
	}
}
