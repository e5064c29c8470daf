package handlertest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/limit"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// TestConcurrencyLimit: in a pool of sixteen workers no more than two run, what is put off is charged no attempt, though
// one attempt is all that a message has, and all are handled.
func TestConcurrencyLimit(t *testing.T) {
	each(t, func(r *rig) {
		var now, most, later atomic.Int64
		mux := router.NewMux()
		mux.Register(urn, limit.Concurrency(2, limit.MaxWait(30*time.Millisecond))(
			delivery.HandlerFunc(func(_ context.Context, d *delivery.Delivery) error {
				n := now.Add(1)
				defer now.Add(-1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				if d.Number != 1 {
					later.Add(1)
				}
				<-time.After(20 * time.Millisecond)
				return nil
			})))
		cfg := r.config(mux)
		cfg.Concurrency, cfg.MaxAttempts, cfg.RetryAfter = 16, 1, time.Hour
		p := r.start(cfg)
		const n = 60
		for range n {
			r.send(urn, nil)
		}
		p.await("all are handled", func(s pool.QueueStats) bool { return s.Acked == n })
		s := p.stats()
		if most.Load() != 2 || later.Load() != 0 || s.Postponed == 0 || s.Failed+s.DeadLettered+s.Lost != 0 || r.left() != 0 {
			r.t.Errorf("%d at once, %d with a later number, %d left; %+v", most.Load(), later.Load(), r.left(), s)
		}
	})
}

// TestRateLimit: messages beyond the rate come later, as often as it takes, and all are handled.
func TestRateLimit(t *testing.T) {
	each(t, func(r *rig) {
		mux := router.NewMux()
		mux.Use(limit.ByURN(map[string]router.Middleware{urn: limit.Rate(20, 5, limit.MaxWait(0))}))
		mux.HandleFunc(urn, func(context.Context, *delivery.Delivery) error { return nil })
		cfg := r.config(mux)
		cfg.RetryAfter = time.Hour
		began := time.Now()
		p := r.start(cfg)
		const n = 40
		for range n {
			r.send(urn, nil)
		}
		p.await("all are handled", func(s pool.QueueStats) bool { return s.Acked == n })
		if s, took := p.stats(), time.Since(began); took < 1700*time.Millisecond || s.Postponed == 0 || s.Failed != 0 || r.left() != 0 {
			r.t.Errorf("%d are left after %s; %+v", r.left(), took, s)
		}
	})
}
