package faulttest

import (
	"context"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/pool"
)

// firstAttempts are what a handler sees in attempts on the first delivery.
func firstAttempts(layout pool.Layout) int64 {
	if layout == pool.Zset {
		return 1
	}
	return 0
}

// TestB12DeepBufferIsLeasedWork lets messages wait in the buffer for several leases: each is started once.
func TestB12DeepBufferIsLeasedWork(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const n = 64
		lease := scaled(2*time.Second, 3*time.Second)
		work := scaled(80*time.Millisecond, 200*time.Millisecond)
		r := newSharedRig(t, layout)
		r.publish(n)
		p := r.start(pool.Config{
			RetryAfter: lease, Concurrency: 1, Prefetch: n,
			Handler: r.handler(func(ctx context.Context, seq int, d *delivery.Delivery) error {
				if d.Attempts != firstAttempts(layout) {
					t.Errorf("message %d was delivered with attempts %d", seq, d.Attempts)
				}
				return retry.Sleep(ctx, work)
			}),
		})
		p.until("the buffer is full", func(c pool.QueueStats) bool { return c.Reserved == n })
		r.awaitAllDone()
		r.awaitEmpty()
		p.stopClean()
		r.onceEach(t)
		if c := p.counts(); c.Acked != n || c.Moved != 0 || c.Late != 0 || c.Lost != 0 || c.Renewed == 0 {
			t.Errorf("every message acked once, renewed, none moved, late or lost expected: %+v", c)
		}
	})
}
