package idempotency_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/idempotency"
	"github.com/babelpool/babelpool/router"
)

// A message that is delivered twice charges the card once. The mux goes into pool.Config as Handler.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()}) // the pool's client will do
	defer func() { _ = rdb.Close() }()

	seen, err := idempotency.NewRedis(idempotency.RedisConfig{Client: rdb, TTL: 7 * 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	mux := router.NewMux()
	mux.Use(idempotency.Middleware(idempotency.Config{
		Store:  seen,
		Claims: seen, // one worker at a time for each message; without it two may run the same at once
	}))
	mux.HandleFunc("urn:babel:orders:paid", func(_ context.Context, d *delivery.Delivery) error {
		fmt.Println("charged for", d.Meta.ID)
		return nil
	})

	paid := &delivery.Delivery{Envelope: envelope.Envelope{URN: "urn:babel:orders:paid", Meta: envelope.Meta{ID: "f1e2"}}}
	fmt.Println("first delivery:", mux.Handle(context.Background(), paid))
	fmt.Println("second delivery:", mux.Handle(context.Background(), paid))
	// Output:
	// charged for f1e2
	// first delivery: <nil>
	// second delivery: <nil>
}
