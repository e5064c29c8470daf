// Idempotent charges a card once, although the message that asks for it comes twice: a producer that got no answer has
// published it again. It ends when both copies are settled.
//
//	BQ_REDIS_URL=redis://localhost:6379 go run ./examples/idempotent
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/idempotency"
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	rdb, err := pool.OpenRedis(url)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()

	// Remember for longer than a message can be on its way: retries, a weekend in the dead letters.
	seen, err := idempotency.NewRedis(idempotency.RedisConfig{Client: rdb, TTL: 7 * 24 * time.Hour})
	if err != nil {
		return err
	}
	mux := router.NewMux()
	mux.Use(idempotency.Middleware(idempotency.Config{
		Store:  seen,
		Claims: seen, // two workers that get the copies at the same time do not both run
	}))
	mux.HandleFunc("urn:babel:payments:charge", func(_ context.Context, d *delivery.Delivery) error {
		fmt.Println("charged for", d.Meta.ID)
		return nil
	})

	payments, err := publisher.New(publisher.Config{Client: rdb, Queue: "payments"})
	if err != nil {
		return err
	}
	id := "payment-" + time.Now().Format(time.RFC3339Nano) // of the business: the same for each try to send it
	for range 2 {
		if _, err := payments.Publish(ctx, "urn:babel:payments:charge", map[string]any{"cents": 990}, publisher.WithID(id)); err != nil {
			return err
		}
		fmt.Println("published", id)
	}

	p := pool.New(pool.Config{Client: rdb, Queues: []pool.Queue{{Name: "payments"}}, Handler: mux})
	var running errgroup.Group
	running.Go(func() error { return p.Run(ctx) })
	for settled := int64(0); settled < 2 && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if queues := p.Stats().Queues; len(queues) > 0 { // there are none before it runs
			settled = queues[0].Acked
		}
	}
	fmt.Println("both are acked")
	stop() // enough for an example; the pool drains
	return running.Wait()
}
