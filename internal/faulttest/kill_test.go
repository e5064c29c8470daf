package faulttest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestB01ConsumerProcessKilled kills a consumer process at random moments: whatever it held is in flight,
// under a lease, and the next process finishes it.
func TestB01ConsumerProcessKilled(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const perRound = 200
		rounds := scaled(3, 20)
		work := scaled(40*time.Millisecond, 200*time.Millisecond)
		r := newSharedRig(t, layout)
		config := childConfig{Concurrency: 8, Prefetch: 32, RetryAfter: 2 * time.Second, Handler: work}
		inFlight := 0
		for round := range rounds {
			_, before, _ := r.totals()
			r.publish(perRound)
			c := r.startChild(config)
			handled := rand.IntN(perRound)
			testredis.Eventually(t, patience, func() bool {
				_, done, _ := r.totals()
				return done >= before+handled
			}, "%d messages handled in round %d", handled, round)
			pause(t, rand.N(work))
			c.kill()
			s := r.check()
			inFlight += len(s.flight)
		}
		if inFlight == 0 {
			t.Error("nothing was in flight at any kill: the test has shown nothing")
		}
		c := r.startChild(config)
		r.awaitAllDone()
		r.awaitEmpty()
		c.stop()
		stored, done, starts := r.totals()
		t.Logf("%d messages, %d handled, %d starts, %d in flight at %d kills", stored, done, starts, inFlight, rounds)
	})
}
