package acker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestEachSettlementIsFinishedOnce plays random settlements against a store with random faults. In the end each
// has freed its slot, its bytes and its part of the lease once, and Redis has carried out none twice.
func TestEachSettlementIsFinishedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		layout := rapid.SampledFrom([]flow.Layout{flow.Legacy, flow.Zset}).Draw(rt, "layout")
		batch := rapid.IntRange(1, 8).Draw(rt, "batch")
		ops := rapid.SliceOfN(rapid.SampledFrom([]flow.Op{
			flow.Ack, flow.Ack, flow.Release, flow.Return, flow.Requeue, flow.DeadLetter, flow.HandBack, flow.Leave, flow.Forget,
		}), 1, 40).Draw(rt, "operations")
		faults := rapid.SliceOfN(rapid.SampledFrom([]error{nil, nil, errTransient, errAmbiguous, errPermanent}), 0, 25).Draw(rt, "faults")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 3), len(ops), len(ops)).Draw(rt, "seconds between them")

		var problem error
		synctest.Test(t, func(t *testing.T) {
			g := newRig(layout, batch)
			carriedOut := map[*flow.Reservation]int{}
			g.answer = func(c call) ([]flow.Result, error) {
				var err error
				if len(faults) > 0 {
					err, faults = faults[0], faults[1:]
				}
				results := make([]flow.Result, len(c.settled))
				for i, s := range c.settled {
					if s.Op >= flow.Leave || c.back != (s.Op == flow.HandBack) {
						problem = fmt.Errorf("%s is sent (hand back: %t)", s.Op, c.back)
					}
					if err == nil || err == errAmbiguous { //nolint:errorlint // the fault drawn above
						// The gate of the scripts: the second time it is late. Where the text could have been
						// reserved anew, there must be no second time (Z4).
						if carriedOut[s.Reservation]++; carriedOut[s.Reservation] > 1 {
							results[i] = flow.Late
							if !layout.Resendable(s.Op) {
								problem = fmt.Errorf("%s is sent again after a lost reply", s.Op)
							}
						}
					}
				}
				return results, err
			}
			done := g.running(t.Context())
			for i, op := range ops {
				g.send(op)
				time.Sleep(time.Duration(pauses[i]) * time.Second)
			}
			if err := g.end(done); err != nil {
				problem = err
			}
			if g.freed != len(ops) || len(g.book.Renewable(g.lease, time.Now(), nil)) != items-len(ops) {
				problem = fmt.Errorf("%d of %d slots freed", g.freed, len(ops))
			}
		})
		if problem != nil {
			rt.Fatal(problem)
		}
	})
}
