package bench

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

const (
	concurrency = 64
	prefetch    = 512
)

// BenchmarkEndToEnd is a pool that consumes a full queue; the handler binds data into a struct and returns.
func BenchmarkEndToEnd(b *testing.B) {
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		b.Run(layout.String(), func(b *testing.B) { endToEnd(b, newRig(b, false), layout) })
	}
}

// BenchmarkEndToEndAOF is the same beside an append-only file, for its bytes per message.
func BenchmarkEndToEndAOF(b *testing.B) {
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		b.Run(layout.String(), func(b *testing.B) { endToEnd(b, newRig(b, true), layout) })
	}
}

func endToEnd(b *testing.B, r *rig, layout flow.Layout) {
	_, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N)
	b.ReportAllocs()
	r.measure(b, b.N, func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var handled atomic.Int64
		total := int64(b.N)
		mux := router.NewMux()
		mux.HandleFunc(urn, func(_ context.Context, d *delivery.Delivery) error {
			var order struct {
				OrderID int64  `json:"order_id"`
				Note    string `json:"note"`
			}
			if err := d.Bind(&order); err != nil {
				return delivery.DeadLetter(err)
			}
			if handled.Add(1) == total {
				cancel()
			}
			return nil
		})
		p := pool.New(pool.Config{
			Client: r.client, Queues: []pool.Queue{{Name: queue}}, Layout: layout, Handler: mux,
			Concurrency: concurrency, Prefetch: prefetch, Logger: slog.New(slog.DiscardHandler),
		})
		must(b, p.Run(ctx))
		if acked := p.Stats().Queues[0].Acked; acked != total {
			b.Fatalf("%d messages acked of %d", acked, total)
		}
	})
}
