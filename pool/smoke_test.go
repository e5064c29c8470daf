package pool_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

func TestSmoke(t *testing.T) {
	for _, layout := range []pool.Layout{pool.Legacy, pool.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			testredis.Each(t, func(t *testing.T, b testredis.Backend) {
				const n = 1000
				for i := range n {
					e, err := envelope.New("urn:babel:orders:created", "orders", map[string]int{"i": i})
					if err != nil {
						t.Fatal(err)
					}
					key := b.Prefix + "orders"
					if layout == pool.Zset {
						key = b.Prefix + "queues:orders"
					}
					b.Client.RPush(t.Context(), key, e.Encode())
				}
				var done atomic.Int64
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				mux := router.NewMux()
				mux.HandleFunc("urn:babel:orders:created", func(ctx context.Context, d *delivery.Delivery) error {
					if done.Add(1) == n {
						cancel()
					}
					return nil
				})
				p := pool.New(pool.Config{Client: b.Client, Queues: []pool.Queue{{Name: "orders"}}, Layout: layout, Handler: mux, KeyPrefix: b.Prefix})
				start := time.Now()
				if err := p.Run(ctx); err != nil {
					t.Fatal(err)
				}
				fmt.Println(layout, b.Name, time.Since(start), fmt.Sprintf("%+v", p.Stats()))
				for _, k := range b.Client.Keys(context.Background(), b.Prefix+"*").Val() {
					t.Error("left", k)
				}
			})
		})
	}
}
