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

// percentile is the value that the given share of the sorted durations does not exceed.
func percentile(sorted []time.Duration, share float64) time.Duration {
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// TestSerialB39PickUpLatency publishes single messages at random times to a pool that is otherwise idle. The
// limits are the case's, and what a PING took meanwhile, four times, for the four messages on the way.
func TestSerialB39PickUpLatency(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			r := newRig(t, layout, redisproc.Config{})
			started := make(chan time.Time, 1)
			rigs, queues := idleRigs(r, func(one *rig) delivery.Handler {
				return one.handler(func(context.Context, int, *delivery.Delivery) error { started <- time.Now(); return nil })
			})
			p := r.start(pool.Config{Queues: queues, Concurrency: 16})
			pause(t, time.Second)
			var pickUps, pings []time.Duration
			for range scaled(50, 200) {
				pause(t, rand.N(100*time.Millisecond))
				begun := time.Now()
				must(t, r.control.Ping(t.Context()).Err())
				published := time.Now()
				pings = append(pings, published.Sub(begun))
				rigs[rand.IntN(len(rigs))].publish(1)
				select {
				case at := <-started:
					pickUps = append(pickUps, at.Sub(published))
				case <-time.After(patience):
					t.Fatal("a message was not picked up")
				}
			}
			slices.Sort(pickUps)
			slices.Sort(pings)
			for _, q := range []struct {
				share float64
				limit time.Duration
			}{{0.5, 5 * time.Millisecond}, {0.99, 50 * time.Millisecond}} {
				got, ping := percentile(pickUps, q.share), percentile(pings, q.share)
				t.Logf("p%.0f: picked up after %v, PING %v", q.share*100, got, ping)
				if got >= q.limit+4*ping {
					t.Errorf("p%.0f: picked up after %v, want less than %v and four PINGs of %v", q.share*100, got, q.limit, ping)
				}
			}
			p.stopClean()
		})
	}
}
