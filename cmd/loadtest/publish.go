package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/publisher"
)

const (
	publishers     = 4
	publishBatch   = 256
	publishBytes   = 1 << 20 // of a batch; larger messages go in smaller ones
	publishTimeout = 10 * time.Second
	backlogBytes   = 256 << 20 // published and not yet settled, when publishing as fast as possible
	backlogLeast   = 4 * publishers * publishBatch
)

// sender is the part of a Publisher that the test uses.
type sender interface {
	PublishBatch(ctx context.Context, messages []publisher.Message) ([]publisher.Result, error)
}

// newPacer is the pacer of a config.
func newPacer(cfg config, c clock) *pacer {
	return &pacer{
		clock: c, batch: int64(max(1, min(publishBatch, publishBytes/cfg.payload))),
		limit: cfg.messages, until: cfg.duration, rate: cfg.rate,
	}
}

// publish sends all messages, or as many as it can before ctx ends. An error means that the server refuses
// them; a server that is away is waited for.
func (t *trial) publish(ctx context.Context) error {
	begin := t.clock.now()
	t.publishBegan.Store(int64(begin))
	p := newPacer(t.cfg, t.clock)
	g, ctx := errgroup.WithContext(ctx)
	for range publishers {
		g.Go(func() error { return t.publisher(ctx, p) })
	}
	err := g.Wait()
	t.publishEnd = t.clock.now()
	t.publishTime = t.publishEnd - begin
	t.publishingEnded.Store(true)
	return err
}

// publisher is one of the goroutines that publish.
func (t *trial) publisher(ctx context.Context, p *pacer) error {
	for {
		if !t.awaitConsumers(ctx) {
			return nil
		}
		s, ok := p.take(ctx)
		if !ok {
			return nil
		}
		if err := t.books.open(s.first + s.count); err != nil {
			return err
		}
		if err := t.send(ctx, p, s); err != nil {
			return err
		}
	}
}

// awaitConsumers holds publishers up while the backlog would fill the server's memory; false when ctx ended.
// Only where the test itself sets the pace: with -rate the load must not wait for the server, and -prefill
// asks for the backlog.
func (t *trial) awaitConsumers(ctx context.Context) bool {
	if t.cfg.rate > 0 || t.cfg.prefill {
		return true
	}
	most := max(backlogLeast, backlogBytes/int64(t.cfg.payload))
	for t.books.size.Load()-t.settled.Load() > most {
		if retry.Sleep(ctx, watchEvery) != nil {
			return false
		}
	}
	return true
}

// send publishes a slice. What was surely not stored is sent again, until ctx ends; what may have been stored
// is not, the final read tells.
func (t *trial) send(ctx context.Context, p *pacer, s slice) error {
	seqs, messages := make([]int64, s.count), make([]publisher.Message, s.count)
	for i := range seqs {
		seqs[i] = s.first + int64(i)
		messages[i] = t.mint.message(seqs[i], t.clock.stamp(p.intended(seqs[i])))
	}
	again := retry.New()
	for ctx.Err() == nil {
		unsent, err := t.sendOnce(ctx, p, seqs, messages)
		if err != nil || unsent == 0 {
			return err
		}
		seqs, messages = seqs[:unsent], messages[:unsent]
		_ = again.Wait(ctx) // the loop looks at ctx
	}
	return nil
}

// sendOnce makes one call and enters what became of each message. What was surely not stored it moves to the
// front, and returns how many those are.
func (t *trial) sendOnce(
	ctx context.Context, p *pacer, seqs []int64, messages []publisher.Message,
) (unsent int, refused error) {
	// Not given up at an interrupt: a command that is on its way could arrive after the final read.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	now := t.clock.now()
	results, err := t.sender.PublishBatch(call, messages)
	t.noteHealth(err)
	for i, r := range results {
		seq := seqs[i]
		switch {
		case r.Err == nil:
			t.books.published(seq, stored)
		case errors.Is(r.Err, publisher.ErrMayBeStored):
			t.books.published(seq, doubtful)
		case errors.Is(r.Err, publisher.ErrUnavailable), errors.Is(r.Err, publisher.ErrNotSent):
			seqs[unsent], messages[unsent] = seq, messages[i]
			unsent++
			continue // it is not sent yet
		default:
			refused = fmt.Errorf("publishing: %w", r.Err)
			continue
		}
		t.lateness.sent(now - p.intended(seq))
	}
	return unsent, refused
}

// noteHealth tells of changes, once each.
func (t *trial) noteHealth(err error) {
	if t.cfg.chaos != nil { // it is held up on purpose
		return
	}
	if err != nil && t.heldUp.CompareAndSwap(false, true) {
		t.show.notef("publishing is held up: %v", err)
	}
	if err == nil && t.heldUp.CompareAndSwap(true, false) {
		t.show.notef("publishing works again")
	}
}
