package bench

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// handled is a handler that binds data, as real ones do, and then calls each.
func handled(each func(order)) delivery.Handler {
	mux := router.NewMux()
	mux.HandleFunc(urn, func(_ context.Context, d *delivery.Delivery) error {
		var data order
		if err := d.Bind(&data); err != nil {
			return delivery.DeadLetter(err)
		}
		each(data)
		return nil
	})
	return mux
}

// oneQueue is the config of a pool on the benchmark's queue.
func oneQueue(layout flow.Layout, concurrency, prefetch int) pool.Config {
	return pool.Config{
		Queues: []pool.Queue{{Name: queue}}, Layout: layout, Concurrency: concurrency, Prefetch: prefetch,
	}
}

// consume runs a pool until n messages are handled, and settled when it returns. With more in the queue than n,
// those that workers had begun meanwhile are too, and what was only fetched goes back.
func (r *rig) consume(tb testing.TB, cfg pool.Config, n int) {
	tb.Helper()
	if acked := r.consumeWithin(tb, cfg, n, noLimit); acked < n {
		tb.Fatalf("%d messages acked of %d", acked, n)
	}
}

const noLimit = 24 * time.Hour

// consumeWithin is consume that stops early when the time is up. It says how many messages were acked.
func (r *rig) consumeWithin(tb testing.TB, cfg pool.Config, n int, limit time.Duration) int {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var count atomic.Int64
	cfg.Client, cfg.Logger = r.client, slog.New(slog.DiscardHandler)
	cfg.Handler = handled(func(order) {
		if count.Add(1) == int64(n) {
			cancel()
		}
	})
	p := pool.New(cfg)
	must(tb, p.Run(ctx))
	return int(ackedBy(p))
}

// start runs a pool whose handler calls each. The function it returns stops the pool, and waits for it.
func (r *rig) start(tb testing.TB, cfg pool.Config, each func(order)) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cfg.Client, cfg.Logger, cfg.Handler = r.client, slog.New(slog.DiscardHandler), handled(each)
	ended := make(chan error, 1)
	go func() { ended <- pool.New(cfg).Run(ctx) }()
	stopped := false
	stop = func() {
		tb.Helper()
		cancel()
		if !stopped {
			stopped = true
			must(tb, <-ended)
		}
	}
	tb.Cleanup(stop)
	return stop
}

func ackedBy(p *pool.Pool) int64 {
	var acked int64
	for _, q := range p.Stats().Queues {
		acked += q.Acked
	}
	return acked
}
