// Batch consumes measurements and stores them by the hundred, as rows of one INSERT would be. One of them cannot be stored: it is
// dead-lettered by itself and keeps nobody else. It ends when all are stored.
//
//	BQ_REDIS_URL=redis://localhost:6379 go run ./examples/batch
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/babelpool/babelpool/batch"
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

const messages = 1000

type measurement struct {
	Sensor  int     `json:"sensor"`
	Celsius float64 `json:"celsius"`
}

func run(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	rdb, err := pool.OpenRedis(url)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	out, err := publisher.New(publisher.Config{Client: rdb, Queue: "measurements"})
	if err != nil {
		return err
	}
	all := make([]publisher.Message, messages)
	for i := range all {
		all[i] = publisher.Message{URN: "urn:babel:measurements:taken", Data: measurement{Sensor: i, Celsius: 21.5}}
	}
	all[500].Data = measurement{Sensor: -1}
	if _, err := out.PublishBatch(ctx, all); err != nil {
		return err
	}

	var stored atomic.Int64
	mux := router.NewMux()
	mux.Register("urn:babel:measurements:taken", batch.Typed(
		batch.Config{Size: 100, Wait: 50 * time.Millisecond},
		func(_ context.Context, items []*batch.Item[measurement]) error {
			rows := 0
			for _, item := range items {
				if item.Value.Sensor < 0 {
					item.Done(delivery.DeadLetter(errors.New("there is no such sensor")))
					continue
				}
				rows++ // of the INSERT
			}
			fmt.Println("stored", rows, "rows at once")
			if stored.Add(int64(rows)) == messages-1 {
				fmt.Println("all are stored")
				stop() // enough for an example; the pool drains
			}
			return nil // acks those of which nothing else was said
		}))
	return pool.New(pool.Config{
		Client:      rdb,
		Queues:      []pool.Queue{{Name: "measurements"}},
		Handler:     mux,
		Concurrency: 200, // twice the batch: one fills while another runs
		Prefetch:    400,
	}).Run(ctx)
}
