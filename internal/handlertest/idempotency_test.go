package handlertest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/idempotency"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/router"
)

// once is a mux whose handlers run once for each message.
func (r *rig) once(cfg idempotency.Config) *router.Mux {
	r.t.Helper()
	seen, err := idempotency.NewRedis(idempotency.RedisConfig{Client: r.client, KeyPrefix: r.prefix, TTL: time.Hour})
	if err != nil {
		r.t.Fatal(err)
	}
	cfg.Store, cfg.Claims = seen, seen
	mux := router.NewMux()
	mux.Use(idempotency.Middleware(cfg))
	return mux
}

// TestPublishedTwice: a message that was published twice, because the first reply was lost say, is handled once, and both
// copies are acked. What failed runs again.
func TestPublishedTwice(t *testing.T) {
	each(t, func(r *rig) {
		var runs atomic.Int32
		mux := r.once(idempotency.Config{})
		mux.HandleFunc(urn, func(context.Context, *delivery.Delivery) error {
			if runs.Add(1) == 1 {
				return errors.New("no stock")
			}
			return nil
		})
		cfg := r.config(mux)
		cfg.Concurrency, cfg.FailureDelay = 1, new(float64)
		p := r.start(cfg)
		for range 3 {
			if _, err := r.publish.Publish(r.t.Context(), urn, nil, publisher.WithID("same")); err != nil {
				r.t.Fatal(err)
			}
		}
		p.await("all copies are acked", func(s pool.QueueStats) bool { return s.Acked == 3 })
		if s := p.stats(); runs.Load() != 2 || s.Failed != 1 || r.left() != 0 {
			r.t.Errorf("%d runs, one in vain; %+v; %d messages left", runs.Load(), s, r.left())
		}
		if got := r.client.Get(r.t.Context(), r.prefix+"bq:idemp:same").Val(); got != "1" {
			r.t.Errorf("the note is %q", got)
		}
	})
}
