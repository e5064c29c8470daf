package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

var (
	// errInjected is the failure of a handler that -fail asks for.
	errInjected = errors.New("failed on purpose")

	// errOver ends a consumption by itself, as opposed to an interrupt.
	errOver = errors.New("nothing is left to wait for")

	// errStranger dead-letters a message that this run did not publish.
	errStranger = errors.New("not a message of this run")
)

const handlerTimeout = 10 * time.Minute // of a pool by default

// newPool is the pool under test.
func (t *trial) newPool() *pool.Pool {
	mux := router.NewMux()
	mux.HandleFunc(messageURN, t.handle)
	cfg := pool.Config{
		Client: t.srv.client, Queues: []pool.Queue{{Name: t.queue}}, Layout: t.cfg.layout, Handler: mux,
		Concurrency: t.cfg.concurrency, Prefetch: t.cfg.prefetch, RetryAfter: t.cfg.retryAfter,
		MaxAttempts: t.cfg.maxAttempts, Backoff: pool.Backoff{Base: t.cfg.backoff},
		HandlerTimeout: max(handlerTimeout, 2*t.cfg.handlerTime),
		Logger: slog.New(quiet{slog.NewTextHandler(t.show, &slog.HandlerOptions{
			Level: slog.LevelWarn, ReplaceAttr: withoutTime,
		})}),
	}
	if t.cfg.layout == pool.Legacy {
		cfg.LegacyRetry, cfg.Backoff = t.cfg.legacyRetry, pool.Backoff{}
	}
	return pool.New(cfg)
}

// handle is the handler: it enters its start and its success in the books.
func (t *trial) handle(ctx context.Context, d *delivery.Delivery) error {
	now := t.clock.now()
	var s stamp
	if err := d.Bind(&s); err != nil {
		return delivery.DeadLetter(err)
	}
	run := 0
	if s.Run == t.runID {
		run = t.books.started(s.Seq)
	}
	if run == 0 {
		return delivery.DeadLetter(errStranger)
	}
	if run == 1 {
		t.latencies.record(s.Seq, t.clock.since(s.At, now))
	}
	if t.cfg.handlerTime > 0 {
		if err := retry.Sleep(ctx, t.cfg.handlerTime); err != nil {
			return err
		}
	}
	if fails(s.Seq, run, t.cfg.fail) {
		return errInjected
	}
	t.books.succeeded(s.Seq)
	return nil
}

// fails decides whether a run of a message's handler fails. It depends on nothing but the message and how
// often its handler has started, so that a run can be repeated.
func fails(seq int64, run int, probability float64) bool {
	x := uint64(seq)<<16 ^ uint64(run)
	// The finalizer of splitmix64 spreads neighbours over all 64 bits.
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11)/(1<<53) < probability
}

// consume runs the pool, and beside it the publishers unless everything was published before, until all is
// settled, nothing moves any more, or ctx ends.
func (t *trial) consume(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(errOver)
	t.consumption.begin(ctx, t)
	var poolErr, publishErr, watchErr error
	var g errgroup.Group
	g.Go(func() error {
		defer stop(errOver) // it may refuse to start
		poolErr = t.pool.Run(ctx)
		return nil
	})
	if !t.cfg.prefill {
		g.Go(func() error {
			publishErr = t.publish(ctx)
			return nil
		})
	}
	g.Go(func() error {
		defer stop(errOver)
		watchErr = t.watch(ctx)
		return nil
	})
	_ = g.Wait() // the errors are kept apart, because all of them are told
	t.look()     // what was settled in the drain
	return errors.Join(poolErr, publishErr, watchErr)
}

// quiet drops the pool's reports of failures that were asked for.
type quiet struct{ slog.Handler }

// Handle passes on what is no failure on purpose.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	injected := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		injected = injected || ok && errors.Is(err, errInjected)
		return !injected
	})
	if injected {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs keeps the filter.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup keeps the filter.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
