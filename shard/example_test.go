package shard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/shard"
)

type order struct {
	ID       int    `json:"order_id"`
	Customer string `json:"customer"`
}

// server stands in for the application's cluster, where rdb is a redis.NewClusterClient.
func server() (rdb redis.UniversalClient, stop func()) {
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		panic(err)
	}
	rdb = redis.NewClient(&redis.Options{Addr: mini.Addr()})
	return rdb, func() {
		_ = rdb.Close()
		mini.Close()
	}
}

// One busy queue over twelve: a publisher that spreads by customer, and a pool that consumes all of them.
func Example() {
	rdb, stop := server()
	defer stop()
	ctx, done := context.WithCancel(context.Background()) // a program takes signal.NotifyContext
	defer done()

	orders, err := shard.New(shard.Config{
		Config: publisher.Config{Client: rdb, Queue: "orders"},
		Shards: 12,
		Key: func(m publisher.Message) string { // leave it out to spread in turn
			o, _ := m.Data.(order)
			return o.Customer
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	batch := make([]publisher.Message, 120)
	for i := range batch {
		batch[i] = publisher.Message{URN: "urn:babel:orders:created", Data: order{i, fmt.Sprint("customer-", i%40)}}
	}
	if _, err := orders.PublishBatch(ctx, batch); err != nil {
		fmt.Println(err)
		return
	}

	var handled atomic.Int64
	mux := router.NewMux()
	mux.HandleFunc("urn:babel:orders:created", func(context.Context, *delivery.Delivery) error {
		if handled.Add(1) == int64(len(batch)) {
			done() // a program would go on
		}
		return nil
	})
	p := pool.New(pool.Config{
		Client:  rdb,
		Queues:  shard.Queues(pool.Queue{}, orders.Names()),
		Handler: mux,
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err := p.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}
	all := shard.Sum("orders", p.Stats(), orders.Names())
	fmt.Println(all.Name, all.Started, all.Acked)
	// Output: orders 120 120
}

// What other programs need to know: an SDK in another language publishes to these as to any queue.
func ExampleNames() {
	names, err := shard.Names("orders", 3)
	fmt.Println(names, err)
	fmt.Println("customer-17 goes to", names[shard.Of("customer-17", 3)])
	// Output:
	// [orders:{21418} orders:{8209} orders:{16418}] <nil>
	// customer-17 goes to orders:{16418}
}

// After a failure the results tell what may be published again, and with which id.
func ExamplePublisher_PublishBatch() {
	rdb, stop := server()
	defer stop()
	orders, err := shard.New(shard.Config{Config: publisher.Config{Client: rdb, Queue: "orders"}, Shards: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	batch := []publisher.Message{
		{URN: "urn:babel:orders:created", Data: order{ID: 1}},
		{URN: "", Data: order{ID: 2}},
	}
	results, err := orders.PublishBatch(context.Background(), batch)
	var failed *shard.BatchError
	if errors.As(err, &failed) {
		fmt.Println(failed.Stored, "stored,", failed.MayBeStored, "may be,", failed.NotStored, "not")
	}
	for i, r := range results {
		switch {
		case r.Err == nil, errors.Is(r.Err, publisher.ErrEncode):
			fmt.Println(i, r.Err)
		case errors.Is(r.Err, publisher.ErrMayBeStored):
			batch[i].ID = r.ID // consumers that remember ids see at most one of the two
			fallthrough
		default:
			fmt.Println(i, "again")
		}
	}
	// Output:
	// 1 stored, 0 may be, 1 not
	// 0 <nil>
	// 1 publisher: message cannot be encoded: envelope: the URN is empty
}
