package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/yardstick"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

const everything = 1 << 30

func contenders() []contender {
	return []contender{
		{"list-scripts", everything, pushTo(queue), func(ctx context.Context, b *bench) error {
			return yardstick.ListScripts(ctx, b.client, queue, queue+":processing", len(b.bodies))
		}},
		{"floor", everything, pushTo(queue), func(ctx context.Context, b *bench) error {
			return yardstick.Floor(ctx, b.client, queue, queue+":processing", len(b.bodies))
		}},
		{"ceiling-legacy", everything, pushTo(queue), ceiling(pool.Legacy)},
		{"ceiling-zset", everything, pushTo("queues:" + queue), ceiling(pool.Zset)},
		{"babelpool-legacy", everything, pushTo(queue), babelpool(pool.Legacy)},
		{"babelpool-zset", everything, pushTo("queues:" + queue), babelpool(pool.Zset)},
		{"plain", 50_000, pushTo(queue), plain},
		{"watermill", 50_000, addToStream, consumeStream},
		{"asynq", 30_000, enqueue, consumeAsynq},
		{"bullmq", 50_000, bullFill, bullConsume},
	}
}

func pushTo(key string) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		return inChunks(b.bodies, func(part []string) error {
			values := make([]any, len(part))
			for i := range part {
				values[i] = part[i]
			}
			return b.client.RPush(ctx, key, values...).Err()
		})
	}
}

func ceiling(layout pool.Layout) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		keys, err := lua.NewKeys(layout, "", queue, "")
		if err != nil {
			return err
		}
		store := lua.New(layout, lua.Options{Client: b.client, Keys: keys, RetryAfter: time.Minute})
		return yardstick.Ceiling(ctx, store, len(b.bodies))
	}
}

func babelpool(layout pool.Layout) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		mux := router.NewMux()
		mux.HandleFunc(urn, func(_ context.Context, d *delivery.Delivery) error {
			var o order
			if err := d.Bind(&o); err != nil {
				return delivery.DeadLetter(err)
			}
			if b.work.handled.Add(1) == b.work.total {
				cancel()
			}
			return nil
		})
		p := pool.New(pool.Config{
			Client: b.client, Queues: []pool.Queue{{Name: queue}}, Layout: layout, Handler: mux,
			Concurrency: concurrency, Prefetch: prefetch, Logger: slog.New(slog.DiscardHandler),
		})
		if err := p.Run(ctx); err != nil {
			return err
		}
		if acked := p.Stats().Queues[0].Acked; acked != b.work.total {
			return fmt.Errorf("%w: %d of %d acked", errIncomplete, acked, b.work.total)
		}
		return nil
	}
}

// plain is the pattern of a reliable queue without scripts: every goroutine moves one message, decodes it, and
// removes it.
func plain(ctx context.Context, b *bench) error {
	var group errgroup.Group
	for range concurrency {
		group.Go(func() error {
			for b.work.handled.Load() < b.work.total {
				body, err := b.client.BLMove(ctx, queue, queue+":processing", "LEFT", "RIGHT", time.Second).Result()
				if errors.Is(err, redis.Nil) {
					continue
				}
				if err != nil {
					return err
				}
				if err := b.work.handlePlain([]byte(body)); err != nil {
					return err
				}
				if err := b.client.LRem(ctx, queue+":processing", 1, body).Err(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := b.work.wait(ctx); err != nil {
		return err
	}
	b.work.stop()
	return group.Wait()
}

const (
	stream      = "orders-stream"
	streamGroup = "workers"
	subscribers = 16
)

func addToStream(ctx context.Context, b *bench) error {
	marshal := redisstream.DefaultMarshallerUnmarshaller{}
	return inChunks(b.bodies, func(part []string) error {
		_, err := b.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, body := range part {
				values, err := marshal.Marshal(stream, message.NewMessage(watermill.NewUUID(), []byte(body)))
				if err != nil {
					return err
				}
				pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: values})
			}
			return nil
		})
		return err
	})
}

func consumeStream(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group errgroup.Group
	var closers []func() error
	for i := range subscribers {
		s, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
			Client:        redis.NewClient(&redis.Options{Addr: b.addr}), // a subscriber closes its client
			ConsumerGroup: streamGroup, Consumer: strconv.Itoa(i), OldestId: "0",
		}, watermill.NopLogger{})
		if err != nil {
			return err
		}
		closers = append(closers, s.Close)
		messages, err := s.Subscribe(ctx, stream)
		if err != nil {
			return err
		}
		group.Go(func() error {
			for m := range messages {
				if err := b.work.handlePlain(m.Payload); err != nil {
					return err
				}
				m.Ack()
			}
			return nil
		})
	}
	if err := b.work.wait(ctx); err != nil {
		return err
	}
	b.work.stop()
	cancel()
	for _, c := range closers {
		if err := c(); err != nil {
			return err
		}
	}
	return group.Wait()
}

func enqueue(_ context.Context, b *bench) error {
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: b.addr})
	defer func() { _ = client.Close() }()
	var group errgroup.Group
	group.SetLimit(concurrency)
	for _, body := range b.bodies {
		group.Go(func() error {
			_, err := client.Enqueue(asynq.NewTask(urn, []byte(body)))
			return err
		})
	}
	return group.Wait()
}

func consumeAsynq(ctx context.Context, b *bench) error {
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: b.addr}, asynq.Config{
		Concurrency: concurrency, LogLevel: asynq.FatalLevel,
	})
	mux := asynq.NewServeMux()
	mux.HandleFunc(urn, func(_ context.Context, t *asynq.Task) error { return b.work.handlePlain(t.Payload()) })
	if err := server.Start(mux); err != nil {
		return err
	}
	if err := b.work.wait(ctx); err != nil {
		return err
	}
	b.work.stop()
	server.Shutdown()
	return nil
}
