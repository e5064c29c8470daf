package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/publisher"
)

// queuePrefix goes before the run's id in the name of its queue.
const queuePrefix = "loadtest-"

// trial is one run.
type trial struct {
	srv   *server
	show  *progress
	queue string // logical name
	keys  lua.Keys

	worker   // of this process; its clock, books and latencies are the run's
	mint     *mint
	sender   sender
	consumer consumer
	shared   *sharedMemory // nil with one process

	settled         atomic.Int64 // acked or dead-lettered; written by the watcher
	publishBegan    atomic.Int64 // on the clock, nanoseconds; 0 = not yet
	publishingEnded atomic.Bool
	heldUp          atomic.Bool // publishing, by the server

	lateness    lateness      // with -rate
	samples     samples       // written by sampled
	publishTime time.Duration // written before publishingEnded is set
	publishEnd  time.Duration // on the clock; likewise
	consumption consumption   // written by the watcher, read after consume
}

// newTrial prepares a run, which must be closed. Nothing is stored yet.
func newTrial(cfg config, srv *server, show *progress) (*trial, error) {
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	t := &trial{srv: srv, show: show, worker: worker{
		cfg: cfg, runID: hex.EncodeToString(id[:]), clock: newClock(), books: newBooks(), latencies: newLatencies(),
	}}
	t.queue = queuePrefix + t.runID
	var err error
	if t.keys, err = lua.NewKeys(cfg.layout, "", t.queue, ""); err != nil {
		return nil, err
	}
	if t.mint, err = newMint(t.runID, t.queue, cfg.payload); err != nil {
		return nil, err
	}
	if cfg.payload < t.mint.smallest {
		show.notef("-payload: the smallest envelope of this test has about %d bytes; that is used", t.mint.smallest)
	}
	pub, err := publisher.New(publisher.Config{Client: srv.publishing(), Queue: t.queue, Layout: cfg.layout})
	if err != nil {
		return nil, err
	}
	t.sender = pub
	if cfg.processes <= 1 {
		t.consumer = local{t.newPool(srv.client, t.queue, show)}
		return t, nil
	}
	if t.shared, err = newSharedMemory(); err != nil {
		return nil, err
	}
	if t.books, err = newSharedBooks(t.shared); err != nil {
		return nil, errors.Join(err, t.shared.close())
	}
	if cfg.chaos != nil {
		t.consumer = newCrew(t.order(), t.shared, t.latencies, show)
	} else {
		t.consumer = newFleet(t.order(), t.shared, t.latencies, show)
	}
	return t, nil
}

// close removes the keys of the run and gives its memory back.
func (t *trial) close(ctx context.Context) error {
	err := t.removeKeys(ctx)
	if t.shared != nil {
		err = errors.Join(err, t.shared.close())
	}
	return err
}

// run publishes, consumes, reads the keys and closes the books. It returns a report whenever the books could
// be closed, also beside an error.
func (t *trial) run(ctx context.Context) (*report, error) {
	var problems []error
	t.sampled(ctx, func() {
		if t.cfg.prefill {
			problems = append(problems, t.shown(ctx, t.publishingView, t.publish))
		}
		if ctx.Err() == nil {
			problems = append(problems, t.shown(ctx, t.consumingView, t.consume))
		} else {
			t.show.notef("interrupted before the consumption: accounting for what is left")
		}
	})
	if err := t.takeStock(ctx); err != nil {
		problems = append(problems, fmt.Errorf("no books: the queue's keys could not be read: %w", err))
		return nil, errors.Join(problems...)
	}
	return t.report(), errors.Join(problems...)
}

// shown does something while its progress is displayed.
func (t *trial) shown(ctx context.Context, look func() view, do func(context.Context) error) error {
	display, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error {
		t.show.follow(display, look)
		return nil
	})
	err := do(ctx)
	stop()
	_ = g.Wait() // never fails
	return err
}

// removeKeys deletes the keys of this run, and no others. It is not hindered by an interrupt.
func (t *trial) removeKeys(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stockPatience)
	defer cancel()
	keys := runKeys(t.keys)
	if err := persist(ctx, func() error { return t.srv.client.Unlink(ctx, keys...).Err() }); err != nil {
		return fmt.Errorf("the keys of queue %q could not be removed: %w", t.queue, err)
	}
	return nil
}

// runKeys are all keys that can exist because of a queue.
func runKeys(k lua.Keys) []string {
	var keys []string
	for _, key := range []string{
		k.Ready, k.Processing, k.Deadlines, k.Delayed, k.Reserved, k.Notify, k.Paused, k.Ready + ":recoveries",
		k.DeadLetters, k.DeadLetterNotify,
	} {
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}
