package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/pool"
)

// errOver ends a consumption by itself, as opposed to an interrupt.
var errOver = errors.New("nothing is left to wait for")

// counts are what consumers have done so far.
type counts struct {
	Acked    int64
	Settled  int64 // acked or dead-lettered
	Activity int64 // grows with everything that happens
}

// countsOf are the counts of a pool with one queue, or of one that has not started.
func countsOf(s pool.Stats) counts {
	var q pool.QueueStats
	if len(s.Queues) > 0 {
		q = s.Queues[0]
	}
	return counts{q.Acked, q.Acked + q.DeadLettered, q.Reserved + q.Started + q.Acked + q.Failed + q.Released + q.Requeued +
		q.Left + q.DeadLettered + q.Late + q.Moved}
}

func (c counts) plus(d counts) counts {
	return counts{c.Acked + d.Acked, c.Settled + d.Settled, c.Activity + d.Activity}
}

// consumer is what a trial consumes with: a pool in this process, or a fleet or crew of processes.
type consumer interface {
	// run consumes until ctx ends, and then until all is drained. It calls begin once, when everything is
	// prepared; not when it fails before.
	run(ctx context.Context, begin func()) error
	// counts may be called at any time.
	counts() counts
	// processes are the other processes that took part; known once run has returned.
	processes() []processStats
}

// processStats are what one process did.
type processStats struct {
	acked    int64
	cpu      time.Duration // until its last settlement
	cpuKnown bool
}

// local is a pool in this process.
type local struct{ *pool.Pool }

func (l local) run(ctx context.Context, begin func()) error {
	begin()
	return l.Run(ctx)
}

func (l local) counts() counts          { return countsOf(l.Stats()) }
func (local) processes() []processStats { return nil }

// consume runs the consumer, and beside it the publishers unless everything was published before, until all
// is settled, nothing moves any more, or ctx ends.
func (t *trial) consume(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(errOver)
	var consumeErr, publishErr, faultErr, watchErr error
	faulty, mend := context.WithCancel(ctx)
	defer mend()
	begun := make(chan struct{})
	beside := func(do func()) func() error {
		return func() error {
			select {
			case <-begun:
				do()
			case <-ctx.Done():
			}
			return nil
		}
	}
	var g errgroup.Group
	g.Go(func() error {
		defer stop(errOver) // it may refuse to start
		consumeErr = t.consumer.run(ctx, func() {
			t.consumption.begin(ctx, t)
			close(begun)
		})
		return nil
	})
	if !t.cfg.prefill {
		g.Go(beside(func() {
			defer mend() // faults are for messages that come
			publishErr = t.publish(ctx)
		}))
	}
	g.Go(beside(func() { faultErr = t.inject(faulty) }))
	g.Go(beside(func() {
		defer stop(errOver)
		watchErr = t.watch(ctx)
	}))
	_ = g.Wait() // the errors are kept apart, because all of them are told
	t.look()     // what was settled in the drain
	return errors.Join(consumeErr, publishErr, faultErr, watchErr)
}
