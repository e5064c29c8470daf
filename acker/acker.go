package acker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/retry"
)

// Store is where settlements go. Both methods return one result per reservation, in order, and are safe for
// concurrent use; ctx bounds the call.
type Store interface {
	// Settle carries settlements out; Ops are Ack, Release, Return, Requeue, DeadLetter and Excuse.
	Settle(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error)
	// HandBack returns reservations to the head of ready; they come in reservation order.
	HandBack(ctx context.Context, held []*flow.Reservation) ([]flow.Result, error)
}

// Slots takes back the capacity of settled messages.
type Slots interface {
	Release(queue, n int, bytes int64)
}

// Config is what an Acker is made of.
type Config struct {
	Queue    int    // position in the pool
	Name     string // for logs
	Layout   flow.Layout
	Store    Store
	Slots    Slots
	Book     *flow.Book
	Counters *flow.Counters
	In       <-chan flow.Settlement
	Batch    int // most settlements per call
	Logger   *slog.Logger
}

// Acker is the actor that settles the messages of one queue.
type Acker struct {
	cfg     Config
	retry   *retry.Loop
	stuck   []flow.Settlement // refused by Redis until somebody mends something; tried again slowly
	again   time.Time         // when stuck is tried next
	sorting bool              // a refused batch is being tried again operation by operation
	healthy bool              // as of the last call; a change is logged once
	pulse   flow.Pulse        // of Run's loop
}

// New makes an Acker.
func New(cfg Config) *Acker {
	return &Acker{cfg: cfg, retry: retry.New(), healthy: true}
}

// Pulse tells whether Run's loop turns.
func (a *Acker) Pulse() *flow.Pulse { return &a.pulse }

// Run settles until its channel is closed and everything was carried out. ctx is not the pool's: it ends
// when the time to flush is over. Then Run gives up, and its error says how many settlements were not carried
// out; their messages come back when their leases run out (B13).
func (a *Acker) Run(ctx context.Context) error {
	defer a.pulse.Rest()
	batch := make([]flow.Settlement, 0, a.cfg.Batch)
	for {
		var open bool
		a.pulse.Rest()
		batch, open = a.take(batch[:0], ctx.Err() == nil)
		if len(batch) > 0 {
			a.settle(ctx, batch)
		}
		a.retryStuck(ctx, !open)
		if open {
			continue
		}
		if err := ctx.Err(); err != nil && len(a.stuck) > 0 {
			return fmt.Errorf("acker: queue %q: %d settlements not carried out, their messages come back: %w",
				a.cfg.Name, len(a.stuck), context.Cause(ctx))
		}
		if len(a.stuck) == 0 {
			return nil
		}
	}
}

// take blocks for the first settlement and adds what else is there, up to a batch; while there is time to
// retry, it also returns, with nothing, when stuck settlements are due again. open is false when the channel
// is closed and empty: what is still in it when the time is over has to be counted.
func (a *Acker) take(batch []flow.Settlement, retrying bool) (_ []flow.Settlement, open bool) {
	var retryStuck <-chan time.Time
	if retrying && len(a.stuck) > 0 {
		timer := time.NewTimer(time.Until(a.again))
		defer timer.Stop()
		retryStuck = timer.C
	}
	select {
	case s, ok := <-a.cfg.In:
		if !ok {
			return batch, false
		}
		batch = append(batch, s)
	case <-retryStuck:
		return batch, true
	}
	for len(batch) < a.cfg.Batch {
		select {
		case s, ok := <-a.cfg.In:
			if !ok {
				return batch, false
			}
			batch = append(batch, s)
		default:
			return batch, true
		}
	}
	return batch, true
}

// settle carries out a batch: what changes Redis by one call, hand backs by another, the rest not at all.
func (a *Acker) settle(ctx context.Context, batch []flow.Settlement) {
	slices.SortFunc(batch, inReservationOrder)
	var calls, backs, local []flow.Settlement
	calls = batch
	if slices.ContainsFunc(batch, func(s flow.Settlement) bool { return s.Op >= flow.HandBack }) {
		calls = nil
		for _, s := range batch {
			switch s.Op {
			case flow.HandBack:
				backs = append(backs, s)
			case flow.Leave, flow.Forget:
				local = append(local, s)
			default:
				calls = append(calls, s)
			}
		}
	}
	a.finish(local, nil)
	a.apply(ctx, calls)
	a.apply(ctx, backs)
}

// inReservationOrder puts the oldest first: the store finds their values near the head of processing.
func inReservationOrder(x, y flow.Settlement) int {
	return cmp.Or(
		cmp.Compare(x.Reservation.Lease().Number(), y.Reservation.Lease().Number()),
		cmp.Compare(x.Reservation.Order, y.Reservation.Order),
	)
}

// apply carries out settlements of one kind of call until Redis has taken or refused them, or ctx ends.
func (a *Acker) apply(ctx context.Context, settled []flow.Settlement) {
	for len(settled) > 0 {
		a.pulse.Beat() // each try is a turn: an outage may be long
		results, err := a.call(ctx, settled)
		switch {
		case err == nil:
			a.recovered()
			a.finish(settled, results)
			return
		case errors.Is(err, flow.ErrTransient):
			a.failed(err)
			if errors.Is(err, flow.ErrAmbiguous) {
				settled = a.dropUnsendable(settled)
			}
			if a.retry.Wait(ctx) != nil {
				a.stuck = append(a.stuck, settled...)
				return
			}
		default:
			a.refused(ctx, settled, err)
			return
		}
	}
}

func (a *Acker) call(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error) {
	if settled[0].Op != flow.HandBack {
		return a.cfg.Store.Settle(ctx, settled)
	}
	held := make([]*flow.Reservation, len(settled))
	for i, s := range settled {
		held[i] = s.Reservation
	}
	return a.cfg.Store.HandBack(ctx, held)
}

// dropUnsendable takes out what may not be sent again after a lost reply (Z4); its lease recovers it.
func (a *Acker) dropUnsendable(settled []flow.Settlement) []flow.Settlement {
	var keep, drop []flow.Settlement
	for _, s := range settled {
		if a.cfg.Layout.Resendable(s.Op) {
			keep = append(keep, s)
		} else {
			s.Op = flow.Leave
			drop = append(drop, s)
		}
	}
	a.finish(drop, nil)
	return keep
}

// refused handles an error that repeating does not mend, such as a dead letter key of another type. It must
// not hold up the others (B13): each operation, with the keys it needs, goes out without the rest, and what is
// refused alone is put aside and tried again slowly.
func (a *Acker) refused(ctx context.Context, settled []flow.Settlement, err error) {
	var byOp [flow.HandBack + 1][]flow.Settlement
	for _, s := range settled {
		byOp[s.Op] = append(byOp[s.Op], s)
	}
	if len(byOp[settled[0].Op]) < len(settled) {
		a.sorting = true
		for _, same := range byOp {
			a.apply(ctx, same)
		}
		a.sorting = false
		return
	}
	a.failed(err)
	a.stuck = append(a.stuck, settled...)
	a.again = time.Now().Add(a.retry.NextSlow())
}

// retryStuck tries what was put aside again when its time has come; in the flush it waits for that time.
func (a *Acker) retryStuck(ctx context.Context, flushing bool) {
	if len(a.stuck) == 0 || ctx.Err() != nil {
		return
	}
	if wait := time.Until(a.again); wait > 0 {
		if !flushing || retry.Sleep(ctx, wait) != nil {
			return
		}
	}
	stuck := a.stuck
	a.stuck = nil
	for batch := range slices.Chunk(stuck, a.cfg.Batch) {
		a.settle(ctx, batch)
	}
}

// HandBack returns messages nobody started to the head of ready, in one go, at stop; those still to be
// decided are claimed here. It tries once: what fails comes back when its lease runs out.
func (a *Acker) HandBack(ctx context.Context, held []*flow.Reservation) error {
	var settled []flow.Settlement
	for _, r := range held {
		op := flow.HandBack
		if !r.Settle() {
			op = flow.Forget
		}
		settled = append(settled, flow.Settlement{Reservation: r, Op: op})
	}
	slices.SortFunc(settled, inReservationOrder)
	lost := slices.DeleteFunc(slices.Clone(settled), func(s flow.Settlement) bool { return s.Op != flow.Forget })
	settled = slices.DeleteFunc(settled, func(s flow.Settlement) bool { return s.Op == flow.Forget })
	a.finish(lost, nil)
	if len(settled) == 0 {
		return nil
	}
	results, err := a.call(ctx, settled)
	if err != nil {
		for i := range settled {
			settled[i].Op = flow.Leave
		}
		a.finish(settled, nil)
		return fmt.Errorf("acker: queue %q: %d messages not handed back, their leases bring them back: %w",
			a.cfg.Name, len(settled), err)
	}
	a.finish(settled, results)
	return nil
}

// finish counts, and frees slots and leases. results is nil for what changed nothing in Redis.
func (a *Acker) finish(settled []flow.Settlement, results []flow.Result) {
	if len(settled) == 0 {
		return
	}
	bytes := 0
	for i, s := range settled {
		bytes += s.Reservation.Size()
		result := flow.Done
		if results != nil {
			result = results[i]
		}
		a.count(s, result)
	}
	a.cfg.Book.Finish(settled)
	a.cfg.Slots.Release(a.cfg.Queue, len(settled), int64(bytes))
}

func (a *Acker) count(s flow.Settlement, result flow.Result) {
	c := a.cfg.Counters
	switch result {
	case flow.Late:
		c.Late.Add(1)
		return
	case flow.Missing:
		c.Missing.Add(1)
		return
	case flow.Stayed:
		c.Left.Add(1)
		return
	case flow.Done:
	}
	switch s.Op {
	case flow.Ack:
		c.Acked.Add(1)
	case flow.Release:
		c.Released.Add(1)
	case flow.Return:
		c.Returned.Add(1)
	case flow.Requeue:
		c.Requeued.Add(1)
	case flow.DeadLetter:
		c.DeadLetter(s.Reason)
	case flow.HandBack:
		c.HandedBack.Add(1)
	case flow.Leave, flow.Excuse:
		c.Left.Add(1)
	case flow.Forget: // counted by the worker
	}
}

// failed logs a change for the worse, once.
func (a *Acker) failed(err error) {
	if a.healthy {
		a.healthy = false
		a.cfg.Logger.Warn("settling is held up; handled messages wait for their acks", "queue", a.cfg.Name, "error", err)
	}
}

// recovered logs a change for the better, once. Acks that go through beside refused dead letters are none:
// the log would alternate with each batch.
func (a *Acker) recovered() {
	a.retry.Reset()
	if !a.healthy && !a.sorting && len(a.stuck) == 0 {
		a.healthy = true
		a.cfg.Logger.Info("settling works again", "queue", a.cfg.Name)
	}
}
