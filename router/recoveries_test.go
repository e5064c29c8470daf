package router

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
)

// TestB21GivesUpAtTheLimit: at the limit a message is dead-lettered without running, below it it runs; without a limit
// it always does. Recoveries go before MaxAttempts, which would call it failed.
func TestB21GivesUpAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		limit int64
		lost  int64
		want  flow.Op
	}{
		{"none lost", 3, 0, flow.Ack},
		{"below", 3, 2, flow.Ack},
		{"at", 3, 3, flow.DeadLetter},
		{"above", 3, 5, flow.DeadLetter},
		{"off", 0, 5, flow.Ack},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, layout := range layouts {
				synctest.Test(t, func(t *testing.T) {
					ran := false
					handler := delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { ran = true; return nil })
					policy := Policy{MaxRecoveries: tc.limit}
					if tc.want == flow.DeadLetter {
						policy.MaxAttempts = 1
					}
					g := newRig(1, policy, handler, layout)
					r := reserved(0, layout, body(4))
					if tc.lost > 0 {
						r.Recovery = &flow.Recovery{Workers: tc.lost}
					}
					g.cfg.Queues[0].Book.Add(r.Lease(), time.Now())
					g.in.Put(0, r.Lease().Items)
					g.end()
					if err := g.Run(t.Context()); err != nil {
						t.Fatal(err)
					}
					settled := g.settlements(0)
					if len(settled) != 1 || settled[0].Op != tc.want || ran != (tc.want == flow.Ack) {
						t.Errorf("%s: settled %v, ran: %t", layout, settled, ran)
					}
					var lost *WorkersLostError
					told := len(g.told) == 1 && errors.As(g.told[0].err, &lost) && lost.Workers == tc.lost
					if told != (tc.want == flow.DeadLetter) {
						t.Errorf("%s: OnError was told %v", layout, g.told)
					}
				})
			}
		})
	}
}

// TestB21WhatIsLeftIsExcused where lost workers are counted, and left inside the process elsewhere.
func TestB21WhatIsLeftIsExcused(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]flow.Op{0: flow.Leave, 3: flow.Excuse} {
		for _, layout := range layouts {
			for name, ready := range map[string]string{"failed": body(0), "poison": "{}"} {
				synctest.Test(t, func(t *testing.T) {
					fails := delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return errors.New("boom") })
					g := newRig(1, Policy{MaxRecoveries: limit, Poison: BadLeave}, fails, layout)
					g.put(0, ready)
					g.end()
					if err := g.Run(t.Context()); err != nil {
						t.Fatal(err)
					}
					if settled := g.settlements(0); len(settled) != 1 || settled[0].Op != want {
						t.Errorf("%s, %s, limit %d: settled %v, want %s", layout, name, limit, settled, want)
					}
				})
			}
		}
	}
}
