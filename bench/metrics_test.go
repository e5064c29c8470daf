package bench

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/metrics"
	"github.com/babelpool/babelpool/pool"
)

// BenchmarkMetrics is BenchmarkEndToEnd with metrics on, and a scrape every second.
func BenchmarkMetrics(b *testing.B) {
	for _, layout := range both {
		b.Run(layout.String(), func(b *testing.B) {
			r := newRig(b, false)
			_, keys := r.store(b, layout)
			r.fill(b, keys.Ready, b.N)
			b.ReportAllocs()
			r.measure(b, b.N, func() { r.consumeMeasured(b, layout, b.N) })
		})
	}
}

// consumeMeasured is consume with metrics on.
func (r *rig) consumeMeasured(b *testing.B, layout flow.Layout, n int) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var count atomic.Int64
	cfg := oneQueue(layout, concurrency, prefetch)
	cfg.Client, cfg.Logger = r.client, slog.New(slog.DiscardHandler)
	cfg.Handler = handled(func(order) {
		if count.Add(1) == int64(n) {
			cancel()
		}
	})
	m := metrics.New(metrics.Config{})
	p := pool.New(m.Instrument(cfg))
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.Collector(p))
	var scrapes errgroup.Group
	scrapes.Go(func() error { return scrape(ctx, registry) })
	must(b, p.Run(ctx))
	must(b, scrapes.Wait())
	if acked := ackedBy(p); acked < int64(n) {
		b.Fatalf("%d messages acked of %d", acked, n)
	}
}

// scrape scrapes once a second, many times as often as Prometheus does, until ctx ends.
func scrape(ctx context.Context, g prometheus.Gatherer) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		if _, err := g.Gather(); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
