package pool_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// A worker: connect, route by URN, run until the context ends.
func Example() {
	ctx, stop := context.WithCancel(context.Background()) // a program takes signal.NotifyContext
	defer stop()
	server, address := serveOrders(ctx)
	defer server.Close()

	rdb, err := pool.OpenRedis(address) // or bring your own redis.UniversalClient
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	mux := router.NewMux()
	mux.HandleFunc("urn:babel:orders:created", func(_ context.Context, d *delivery.Delivery) error {
		var order struct {
			OrderID int64 `json:"order_id"`
		}
		if err := d.Bind(&order); err != nil {
			return delivery.DeadLetter(err)
		}
		fmt.Println("order", order.OrderID)
		stop() // a worker would go on
		return nil
	})
	err = pool.New(pool.Config{
		Client:      rdb,
		Queues:      []pool.Queue{{Name: "orders"}},
		Layout:      pool.Legacy, // or pool.Zset
		Handler:     mux,
		Concurrency: 64,
		Prefetch:    256,
	}).Run(ctx)
	fmt.Println("drained:", err)
	// Output:
	// order 1042
	// drained: <nil>
}

// serveOrders is a server with one order in its queue.
func serveOrders(ctx context.Context) (*miniredis.Miniredis, string) {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	order, err := envelope.New("urn:babel:orders:created", "orders", map[string]int{"order_id": 1042})
	if err != nil {
		log.Fatal(err)
	}
	producer := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = producer.Close() }()
	if err := producer.RPush(ctx, "orders", order.Encode()).Err(); err != nil {
		log.Fatal(err)
	}
	return server, "redis://" + server.Addr()
}
