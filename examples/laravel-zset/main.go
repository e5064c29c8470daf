// Laravel-zset shares a queue with a Laravel application: the same keys, the same envelope, either side may publish and
// either may consume.
//
// Laravel's side, in config/database.php and config/queue.php:
//
//	'redis' => ['options' => ['prefix' => 'laravel-database-'], …]
//	'redis' => ['driver' => 'redis', 'queue' => 'default', 'retry_after' => 90, 'block_for' => 5]
//
// This side:
//
//	BQ_REDIS_URL=redis://localhost:6379 go run ./examples/laravel-zset
//
// It publishes a reminder that is due in a second, handles it when it is, and fails it once to show the backoff.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/router"
)

const (
	prefix = "laravel-database-" // of Laravel's Redis connection; look it up, it is part of every key
	queue  = "default"           // Laravel's name of the queue
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

	reminders, err := publisher.New(publisher.Config{Client: rdb, Queue: queue, Layout: publisher.Zset, KeyPrefix: prefix})
	if err != nil {
		return err
	}
	_, err = reminders.PublishDelayed(ctx, time.Second, "urn:babel:reminders:due", map[string]any{"text": "water the plants"})
	if err != nil {
		return err
	}

	mux := router.NewMux()
	mux.HandleFunc("urn:babel:reminders:due", func(_ context.Context, d *delivery.Delivery) error {
		var reminder struct {
			Text string `json:"text"`
		}
		if err := d.Bind(&reminder); err != nil {
			return delivery.DeadLetter(err)
		}
		fmt.Println("delivery", d.Number, reminder.Text)
		if d.Number == 1 {
			return errors.New("no water")
		}
		return nil
	})
	return pool.New(pool.Config{
		Client:      rdb,
		Queues:      []pool.Queue{{Name: queue}},
		Layout:      pool.Zset,
		KeyPrefix:   prefix,
		Handler:     mux,
		RetryAfter:  90 * time.Second, // Laravel's retry_after of the connection
		MaxAttempts: 3,                // as --tries=3
		Backoff:     pool.Backoff{Base: time.Second, Multiplier: 2, Max: time.Minute},
		// Jobs of the Laravel application itself, serialized PHP, are not for us: leave them to its workers.
		ForeignJobs: pool.BadLeave,
	}).Run(ctx)
}
