package modeltest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
)

// newRig makes a rig on a backend.
func newRig(t *testing.T, b testredis.Backend, layout flow.Layout, s *stats) *rig {
	g := &rig{
		// Not t.Context: sequences clean up after themselves.
		ctx: context.Background(), layout: layout, client: testredis.Client(t, b.URL), aside: b.Client, wire: &wire{},
		prefix: b.Prefix, bigs: 12, stats: s,
	}
	if b.Real {
		g.bigs = 4
	}
	g.client.AddHook(g.wire)
	return g
}

// Random sequences of everything that can happen to a queue, by several owners, leave every key and bring every result
// as the model says: no call touches what its owner has lost, and no message is lost or doubled (R1).
func TestSequencesFollowTheModel(t *testing.T) {
	// L1, L2, L3, L4, L7, L8, L9, Z1, Z2, Z3, Z4, Z5, Z7, Z10, Z11, D3, R1
	t.Parallel()
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, b testredis.Backend) {
				rounds := scaled(12, 120)
				if b.Real {
					rounds = scaled(2, 20)
				}
				if raceEnabled { // the sequences are of one goroutine each: it has little to find here, and is slow
					rounds = (rounds + 5) / 6
				}
				var s stats
				t.Cleanup(func() { s.report(t, layout) })
				for i := range rounds {
					t.Run(fmt.Sprint("round ", i+1), func(t *testing.T) {
						if !b.Real && i > 0 { // each has an imitation of its own, of which one uses one processor
							b := b
							b.Mini = testredis.Mini(t)
							b.URL = "redis://" + b.Mini.Addr()
							b.Client = testredis.Client(t, b.URL)
						}
						b := b
						b.Prefix += fmt.Sprint(i, ":")
						g := newRig(t, b, layout, &s)
						rapid.Check(t, func(t *rapid.T) {
							if err := g.sequence(t); err != nil {
								t.Fatal(err)
							}
						})
					})
				}
			})
		})
	}
}

// report says what the rounds did, and fails where something was never reached.
func (s *stats) report(t *testing.T, layout flow.Layout) {
	if t.Failed() || testing.Short() { // too few sequences to count on anything
		return
	}
	t.Logf("%d sequences (%d big), %d calls, %d cut; late %d, repeated %d, missing %d, left %d; %d settlements in two calls",
		s.sequences.Load(), s.big.Load(), s.calls.Load(), s.cut.Load(), s.late.Load(), s.repeated.Load(), s.missing.Load(),
		s.stayed.Load(), s.twoCalls.Load())
	reached := map[string]int64{"sequences": s.sequences.Load(), "late calls": s.late.Load(), "cut calls": s.cut.Load(), "repetitions": s.repeated.Load()}
	switch rare := os.Getenv("BQ_STRESS") == "1"; { // a short run may well go by without one
	case rare && layout == flow.Zset:
		reached["releases that stayed"] = s.stayed.Load()
	case rare:
		reached["missing values"], reached["settlements in two calls"] = s.missing.Load(), s.twoCalls.Load()
	}
	for what, n := range reached {
		if n == 0 {
			t.Errorf("no %s: the machine has gone idle", what)
		}
	}
}
