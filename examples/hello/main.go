// Hello publishes an order and consumes it, until it is interrupted.
//
//	BQ_REDIS_URL=redis://localhost:6379 go run ./examples/hello
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/router"
)

func main() {
	if err := run(os.Getenv("BQ_REDIS_URL")); err != nil {
		log.Fatal(err)
	}
}

func run(url string) error {
	// The pool drains and ends when the context does.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	rdb, err := pool.OpenRedis(url)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()

	orders, err := publisher.New(publisher.Config{Client: rdb, Queue: "hello"})
	if err != nil {
		return err
	}
	id, err := orders.Publish(ctx, "urn:babel:orders:created", map[string]any{"order_id": 1042})
	if err != nil {
		return err
	}
	fmt.Println("published", id)

	mux := router.NewMux()
	mux.HandleFunc("urn:babel:orders:created", func(_ context.Context, d *delivery.Delivery) error {
		var order struct {
			OrderID int64 `json:"order_id"`
		}
		if err := d.Bind(&order); err != nil {
			return delivery.DeadLetter(err) // no retry can mend it
		}
		fmt.Println("order", order.OrderID)
		return nil
	})
	return pool.New(pool.Config{
		Client:  rdb,
		Queues:  []pool.Queue{{Name: "hello"}},
		Handler: mux,
	}).Run(ctx)
}
