package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/publisher"
)

// order is the data of the examples' messages.
type order struct {
	ID int `json:"order_id"`
}

// server stands in for the application's Redis.
func server() (rdb *redis.Client, stop func()) {
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

func Example() {
	rdb, stop := server()
	defer stop()
	ctx := context.Background()

	orders, err := publisher.New(publisher.Config{Client: rdb, Queue: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := orders.Publish(ctx, "urn:babel:orders:created", order{ID: 1042})
	if errors.Is(err, publisher.ErrMayBeStored) {
		// Consumers that remember ids see at most one of the two.
		id, err = orders.Publish(ctx, "urn:babel:orders:created", order{ID: 1042}, publisher.WithID(id))
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	stored, _ := envelope.Decode(rdb.LIndex(ctx, "orders", 0).Val())
	fmt.Println(stored.URN, stored.Data, stored.Meta.ID == id)
	// Output: urn:babel:orders:created {"order_id":1042} true
}

func ExamplePublisher_PublishBatch() {
	rdb, stop := server()
	defer stop()
	orders, err := publisher.New(publisher.Config{Client: rdb, Queue: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	results, err := orders.PublishBatch(context.Background(), []publisher.Message{
		{URN: "urn:babel:orders:created", Data: order{ID: 1}},
		{URN: "", Data: order{ID: 2}},
		{URN: "urn:babel:orders:created", Data: order{ID: 3}},
	})
	fmt.Println(err)
	for i, r := range results {
		fmt.Println(i, r.Err)
	}
	// Output:
	// publisher: 1 of 3 messages of the batch failed: publisher: message cannot be encoded: envelope: the URN is empty
	// 0 <nil>
	// 1 publisher: message cannot be encoded: envelope: the URN is empty
	// 2 <nil>
}

func ExamplePublisher_PublishIn() {
	rdb, stop := server()
	defer stop()
	ctx := context.Background()
	orders, err := publisher.New(publisher.Config{Client: rdb, Queue: "orders", Layout: publisher.Zset})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The order's new state and the message that tells of it are stored together or not at all.
	_, err = rdb.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "order:1042", "paid", time.Hour)
		_, err := orders.PublishIn(ctx, pipe, "urn:babel:orders:paid", order{ID: 1042})
		return err
	})
	fmt.Println(err, rdb.Get(ctx, "order:1042").Val(), rdb.LLen(ctx, "queues:orders").Val())
	// Output: <nil> paid 1
}
