package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

var (
	// errInjected is the failure of a handler that -fail asks for.
	errInjected = errors.New("failed on purpose")

	// errStranger dead-letters a message that this run did not publish.
	errStranger = errors.New("not a message of this run")
)

const handlerTimeout = 10 * time.Minute // of a pool by default

// worker is the handler under test, in whatever process: it enters its starts and successes in the books.
type worker struct {
	cfg       config
	runID     string
	clock     clock
	books     *books
	latencies *latencies
	mischief  *mischief // nil without faults
}

// newPool is the pool under test. What it reports goes to w.
func (k *worker) newPool(client *redis.Client, queue string, w io.Writer) *pool.Pool {
	mux := router.NewMux()
	mux.HandleFunc(messageURN, k.handle)
	cfg := pool.Config{
		Client: client, Queues: []pool.Queue{{Name: queue}}, Layout: k.cfg.layout, Handler: mux,
		Concurrency: k.cfg.concurrency, Prefetch: k.cfg.prefetch, Batch: k.cfg.batch, RetryAfter: k.cfg.retryAfter,
		MaxAttempts: k.cfg.maxAttempts, Backoff: pool.Backoff{Base: k.cfg.backoff},
		HandlerTimeout: max(handlerTimeout, 2*k.cfg.handlerTime.longest()),
		Logger: slog.New(quiet{slog.NewTextHandler(w, &slog.HandlerOptions{
			Level: slog.LevelWarn, ReplaceAttr: withoutTime,
		})}),
	}
	if k.cfg.layout == pool.Legacy {
		cfg.LegacyRetry, cfg.Backoff = k.cfg.legacyRetry, pool.Backoff{}
	}
	if k.mischief != nil {
		k.mischief.change(&cfg)
	}
	return pool.New(cfg)
}

// handle is the handler.
func (k *worker) handle(ctx context.Context, d *delivery.Delivery) error {
	now := k.clock.now()
	var s stamp
	if err := d.Bind(&s); err != nil {
		return delivery.DeadLetter(err)
	}
	if s.Run != k.runID {
		return delivery.DeadLetter(errStranger)
	}
	run, err := k.books.started(s.Seq)
	switch {
	case err != nil:
		return err
	case run == 0:
		return delivery.DeadLetter(errStranger)
	case run == 1:
		k.latencies.record(s.Seq, k.clock.since(s.At, now))
	}
	if takes := k.cfg.handlerTime.of(s.Seq); takes > 0 {
		if err := retry.Sleep(ctx, takes); err != nil {
			return err
		}
	}
	if k.mischief != nil {
		if err := k.mischief.of(s.Seq, run, d.Number); err != nil {
			return err
		}
	}
	if fails(s.Seq, run, k.cfg.fail) {
		return errInjected
	}
	if k.mischief != nil {
		k.books.judge(s.Seq, run)
	}
	k.books.succeeded(s.Seq)
	return nil
}

// fails decides whether a run of a message's handler fails. It depends on nothing but the message and how
// often its handler has started, so that a run can be repeated.
func fails(seq int64, run int, probability float64) bool { return uniform(seq, run) < probability }

// uniform is a number from 0 to 1, without 1, that depends on nothing but its arguments.
func uniform(seq int64, run int) float64 {
	x := uint64(seq)<<16 ^ uint64(run)
	// The finalizer of splitmix64 spreads neighbours over all 64 bits.
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}
