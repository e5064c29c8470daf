package pool_test

import (
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
)

// TestPostpone: a message that its handler puts off comes back as it was, long before its lease would have ended, as often
// as it takes, and is neither a failure nor the end of its attempts (Z7). Its slot is free meanwhile.
func TestPostpone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		put := 0
		seen, handler := watch(func(d *delivery.Delivery) error {
			if d.Meta.ID != "m-0001" || put == 2 {
				return nil
			}
			put++
			return delivery.Postpone(time.Second, errBoom)
		})
		cfg := r.config(handler)
		cfg.Concurrency, cfg.Prefetch, cfg.RetryAfter = 1, 1, time.Hour
		cfg.MaxAttempts, cfg.LegacyRetry = 1, pool.Requeue
		r.push(body(1, 0))
		p := r.start(cfg)
		wantEqual(t, "the first", receive(t, seen, "a message").Meta.ID, "m-0001")
		r.push(body(2, 0))
		var numbers []int64
		others := 0
		for len(numbers) < 2 {
			if d := receive(t, seen, "a message"); d.Meta.ID == "m-0001" {
				numbers = append(numbers, d.Number)
			} else {
				others++
			}
		}
		wantEqual(t, "numbers of the later deliveries", numbers, []int64{1, 1})
		wantEqual(t, "others", others, 1)
		r.awaitSettled()
		p.stopped()
		s := p.stats()
		wantEqual(t, "acked, postponed, returned, failed", []int64{s.Acked, s.Postponed, s.Returned, s.Failed}, []int64{2, 2, 2, 0})
		wantConserved(t, s)
		r.wantDead()
	})
}

// TestPostponeIsNoLostWorker: with MaxRecoveries, what is put off again and again is not given up (B21).
func TestPostponeIsNoLostWorker(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		put := 0
		_, handler := watch(func(*delivery.Delivery) error {
			if put++; put <= 4 {
				return delivery.Postpone(0, nil)
			}
			return nil
		})
		cfg := r.config(handler)
		cfg.Concurrency, cfg.MaxRecoveries = 1, 2
		r.push(body(1, 0))
		p := r.start(cfg)
		r.awaitSettled()
		p.stopped()
		s := p.stats()
		wantEqual(t, "acked, postponed, workers lost", []int64{s.Acked, s.Postponed, s.WorkersLost}, []int64{1, 4, 0})
		r.wantDead()
	})
}
