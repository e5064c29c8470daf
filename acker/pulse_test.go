package acker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestPulse: idle or without Redis an acker is alive, in a call that does not end it is not.
func TestPulse(t *testing.T) {
	t.Parallel()
	fails := func(err error) func(call) ([]flow.Result, error) {
		return func(call) ([]flow.Result, error) { return nil, err }
	}
	for name, tc := range map[string]struct {
		ops         []flow.Op
		answer      func(c call) ([]flow.Result, error)
		least, most time.Duration // the longest turn in ten minutes
	}{
		"idle":          {nil, nil, 0, time.Second},
		"idle again":    {[]flow.Op{flow.Ack, flow.Leave}, nil, 0, time.Second},
		"redis is away": {[]flow.Op{flow.Ack}, fails(errTransient), 0, time.Second},
		"redis refuses": {[]flow.Op{flow.DeadLetter}, fails(errPermanent), 0, 8 * time.Second},
		"a call does not end": {[]flow.Op{flow.Ack}, func(call) ([]flow.Result, error) {
			time.Sleep(9 * time.Minute) // the bubble's clock
			return nil, nil
		}, 8 * time.Minute, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(flow.Zset, 100)
				g.answer = tc.answer
				done := g.running(t.Context())
				g.send(tc.ops...)
				longest := time.Duration(0)
				for range 6000 {
					time.Sleep(100 * time.Millisecond) // the bubble's clock
					longest = max(longest, g.acker.Pulse().Turn(time.Now()))
				}
				if longest < tc.least || longest > tc.most {
					t.Errorf("the longest turn took %s, want %s to %s", longest, tc.least, tc.most)
				}
				g.mu.Lock()
				g.answer = nil
				g.mu.Unlock()
				if err := g.end(done); err != nil {
					t.Error(err)
				}
				if turn := g.acker.Pulse().Turn(time.Now()); turn != 0 {
					t.Errorf("a turn of %s after its end", turn)
				}
			})
		})
	}
}
