package pool_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
)

// TestTwins covers B05: equal bodies that fail together and wait together are as many afterwards, in both
// layouts; the zset layout keeps them apart by their attempts (Z3, Z5), the legacy one by tokens (L2).
func TestTwins(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		const n = 40
		var all sync.WaitGroup
		all.Add(n)
		var runs atomic.Int64
		_, handler := watch(func(*delivery.Delivery) error {
			if runs.Add(1) > n {
				return nil
			}
			all.Done()
			all.Wait() // so that all fail at once
			return errBoom
		})
		cfg := r.config(handler)
		cfg.Concurrency, cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = n, n*n, pool.Requeue, ptr(1.0)
		texts := make([]string, n)
		for i := range texts {
			texts[i] = body(1, 0)
		}
		r.push(texts...)
		p := r.start(cfg)
		if r.layout == pool.Zset {
			different := map[string]bool{}
			for _, member := range r.await("all are delayed", func(s state) bool { return len(s.Delayed) == n }).Delayed {
				different[member] = true
			}
			wantEqual(t, "different members", len(different), n)
		}
		s := p.settled(2 * n)
		wantEqual(t, "acked, failed", []int64{s.Acked, s.Failed}, []int64{n, n})
		wantEqual(t, "released or requeued", s.Released+s.Requeued, n)
		r.awaitSettled()
		r.wantDead()
	})
}

// TestTwinInDelayed covers the end of Z5: a release that finds its member in delayed already leaves the
// reservation, and the lease brings the message back with another number.
func TestTwinInDelayed(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		cfg := r.config(function(fail))
		cfg.FailureDelay, cfg.RetryAfter = ptr(600.0), 2*time.Second
		r.push(body(1, 0))
		p := r.start(cfg)
		r.await("the first is delayed", func(s state) bool { return len(s.Delayed) == 1 })
		score := r.delayScore(body(1, 1))
		r.push(body(1, 0))
		s := r.await("the second is left", func(s state) bool { return len(s.InFlight) == 1 && p.stats().Left == 1 })
		wantEqual(t, "in flight, delayed", append(s.InFlight, s.Delayed...), []string{body(1, 1), body(1, 1)})
		wantEqual(t, "the first's time", r.delayScore(body(1, 1)), score)
		s = r.await("both are delayed", func(s state) bool { return len(s.Delayed) == 2 })
		wantEqual(t, "delayed", sortedBriefs(s.Delayed), []string{body(1, 1), body(1, 2)})
		wantConserved(t, p.settled(3))
	})
}
