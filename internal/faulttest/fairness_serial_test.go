//go:build serial && !race

package faulttest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/pool"
)

// TestSerialSingleMessagesBesideABacklog gives one queue a long backlog of slow messages and another single
// ones: those wait for a worker, never for the backlog.
func TestSerialSingleMessagesBesideABacklog(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			const work = 20 * time.Millisecond
			a := newRig(t, layout, redisproc.Config{})
			b := a.beside("single")
			started := make(chan time.Time, 1)
			a.publish(10_000)
			p := a.start(pool.Config{
				Concurrency: 16, RetryAfter: longLease,
				Queues: []pool.Queue{
					{Name: a.queue, Handler: a.sleeping(work)},
					{Name: b.queue, Handler: b.handler(func(context.Context, int, *delivery.Delivery) error { started <- time.Now(); return nil })},
				},
			})
			p.until("the backlog keeps all workers busy", func(c pool.QueueStats) bool { return c.Acked > 100 })
			var delays, pings []time.Duration
			for range scaled(100, 200) {
				pause(t, rand.N(50*time.Millisecond))
				begun := time.Now()
				must(t, b.control.Ping(t.Context()).Err())
				published := time.Now()
				pings = append(pings, published.Sub(begun))
				b.publish(1)
				select {
				case at := <-started:
					delays = append(delays, at.Sub(published))
				case <-time.After(patience):
					t.Fatal("a single message was not started")
				}
			}
			if len(a.snapshot().ready) == 0 {
				t.Error("the backlog was used up: the test has shown nothing")
			}
			slices.Sort(delays)
			slices.Sort(pings)
			got, ping := percentile(delays, 0.99), percentile(pings, 0.99)
			t.Logf("p50 %v, p99 %v beside a backlog of %v; PING p99 %v", percentile(delays, 0.5), got, work, ping)
			if got > 2*work+4*ping {
				t.Errorf("p99 of the start delay is %v, want at most two handlers of %v", got, work)
			}
			p.stopClean()
			b.awaitEmpty()
		})
	}
}
