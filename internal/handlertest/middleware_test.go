package handlertest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// TestMiddleware: a handler is out of its own time long before the pool's, and its message fails; each run is one line.
func TestMiddleware(t *testing.T) {
	each(t, func(r *rig) {
		var kept testlog.Recorder
		mux := router.NewMux()
		mux.Use(router.Logging(slog.New(&kept)), router.Recovery(), router.Timeouts(map[string]time.Duration{urn: 20 * time.Millisecond}))
		causes := make(chan error, 10)
		mux.HandleFunc(urn, func(ctx context.Context, _ *delivery.Delivery) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		})
		mux.HandleFunc("urn:other", func(context.Context, *delivery.Delivery) error { panic("no stock") })
		cfg := r.config(mux)
		cfg.MaxAttempts = 1
		p := r.start(cfg)
		r.send(urn, map[string]any{"card": "secret-4111"})
		r.send("urn:other", nil)
		p.await("both are dead", func(s pool.QueueStats) bool { return s.DeadLettered == 2 })
		if cause := <-causes; !errors.Is(cause, pool.ErrHandlerTimeout) {
			r.t.Errorf("the context ended by %v", cause)
		}
		if got := kept.With("outcome=failed", "urn="+urn, "queue=orders", "delivery=1", `error="context deadline exceeded"`); len(got) != 1 {
			r.t.Errorf("logged %v", kept.Lines())
		}
		if got := kept.With("outcome=panicked", "urn=urn:other", "no stock"); len(got) != 1 || len(kept.With("4111")) != 0 {
			r.t.Errorf("logged %v", kept.Lines())
		}
		if s := p.stats(); s.Panics != 1 || s.Failed != 2 {
			r.t.Errorf("%d panics in %d failures", s.Panics, s.Failed)
		}
	})
}
