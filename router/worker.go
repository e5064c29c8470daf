package router

import (
	"context"
	"errors"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
)

// worker runs one handler at a time.
type worker struct {
	rt   *Router
	ctx  context.Context     //nolint:containedctx // the parent of every handler's context, for the worker's whole life
	job  atomic.Pointer[job] // written by the worker, read by Running and Abandon
	gone bool                // abandoned; guarded by the Router's lock
}

// run is the worker's goroutine. It returns normally when the source has ended; runtime.Goexit in a
// handler gets past it, and the deferred call sees that.
func (w *worker) run() error {
	byItself := false
	defer func() { w.rt.exited(w, byItself) }()
	for {
		r, ok := w.rt.cfg.Source.Take()
		if !ok {
			byItself = true
			return nil
		}
		w.take(r)
	}
}

// take decides what becomes of one reservation.
func (w *worker) take(r *flow.Reservation) {
	q := &w.rt.cfg.Queues[r.Queue]
	j := &job{reservation: r, queue: q.Name}
	w.job.Store(j)
	defer w.job.Store(nil)
	if w.drained(q, j) {
		return
	}
	now := w.awaitLease(q, r)
	if r.State() != flow.Buffered {
		w.rt.forget(q, r)
		return
	}
	if w.drained(q, j) { // Drain came while it waited for its lease
		return
	}
	d, err := read(q, r)
	if err != nil {
		w.poison(q, j, err)
		return
	}
	j.delivery.Store(d)
	w.rt.warnForbidden(d)
	if limit := w.rt.cfg.Policy.MaxRecoveries; limit > 0 && r.WorkersLost() >= limit {
		w.giveUp(q, j, d)
		return
	}
	if limit := w.rt.cfg.Policy.MaxAttempts; limit > 0 && q.Layout == flow.Zset && d.Number > limit {
		w.conclude(w.ctx, q, j, d, ErrTooManyAttempts)
		return
	}
	w.start(q, j, d, now)
}

// drained keeps a message for the hand back when the pool drains, and reports whether it did.
func (w *worker) drained(q *Queue, j *job) bool {
	if !w.rt.draining.Load() {
		return false
	}
	if !w.rt.left.add(j.reservation) {
		w.settle(q, j, flow.Settlement{Reservation: j.reservation, Op: flow.HandBack})
	}
	return true
}

// awaitLease makes sure that the lease is held, and returns the time. What waited in the buffer beyond its
// lease, because the process was frozen or Redis away, is not run before a renewal showed that it still is
// this process's (B12). Where leases are not renewed it is lost.
func (w *worker) awaitLease(q *Queue, r *flow.Reservation) time.Time {
	now := time.Now()
	for r.State() == flow.Buffered && r.Lease().Expired(now) {
		if !q.Book.Renews() || w.ctx.Err() != nil {
			r.Lose()
			break
		}
		q.Book.AwaitRenewal(w.ctx, r.Lease())
		now = time.Now()
	}
	return now
}

// start runs the handler and settles the message, whatever way the handler ends.
func (w *worker) start(q *Queue, j *job, d *delivery.Delivery, now time.Time) {
	r := j.reservation
	ctx := &handlerContext{parent: w.ctx, deadline: w.deadline(q, r, now)}
	if !r.Start(now, ctx) {
		w.rt.forget(q, r)
		return
	}
	q.Counters.Started.Add(1)
	defer ctx.finish()

	// The outcome stands until the handler has said otherwise: runtime.Goexit runs the deferred calls alone.
	outcome := ErrExited
	defer func() { w.conclude(ctx, q, j, d, outcome) }()
	outcome = call(ctx, q.Handler, d)
	if hook := w.rt.cfg.Policy.OnUnknownURN; hook != nil && unknown(outcome) {
		q.Counters.UnknownURN.Add(1)
		missing := outcome
		outcome = ErrExited
		outcome = hookOutcome(call(ctx, delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
			return hook(ctx, missing, d.Envelope, d.Body)
		}), d))
	}
}

// deadline is when a handler that starts now must be done: its timeout and, without renewal, the end of the
// lease, while it is surely held. Zero = never.
func (w *worker) deadline(q *Queue, r *flow.Reservation, now time.Time) time.Time {
	timeout := w.rt.cfg.Policy.HandlerTimeout
	if !q.Book.Renews() {
		if left, ok := r.Lease().Remaining(now); ok && (timeout == 0 || left < timeout) {
			timeout = left
		}
	}
	if timeout == 0 {
		return time.Time{}
	}
	return now.Add(timeout)
}

// call runs a handler and turns a panic into an error. runtime.Goexit passes it.
func call(ctx context.Context, h delivery.Handler, d *delivery.Delivery) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if err = h.Handle(ctx, d); err != nil {
		// An error whose own methods panic, such as a nil pointer of the handler's error type, has to do so in
		// here.
		_ = err.Error()
		_ = errors.Is(err, ErrUnknownURN)
	}
	return err
}

// hookOutcome keeps a hook's own ErrUnknownURN from being taken for a missing handler: a failing hook is a
// failing handler (D4).
func hookOutcome(err error) error {
	if unknown(err) {
		return errors.New("router: OnUnknownURN failed: " + err.Error())
	}
	return err
}

// crashed reports whether a handler did not return: it panicked, or called runtime.Goexit.
func crashed(outcome error) bool {
	var p *PanicError
	return errors.As(outcome, &p) || errors.Is(outcome, ErrExited)
}

// unknown reports whether the URN has no handler. A panic with ErrUnknownURN is a panic.
func unknown(outcome error) bool { return errors.Is(outcome, ErrUnknownURN) && !crashed(outcome) }

// settle sends a job's settlement. Abandon waits for the note that it is sent, so every path comes through
// here. Where lost workers are counted, what is left says that this one was not lost (B21).
func (w *worker) settle(q *Queue, j *job, s flow.Settlement) {
	if s.Op == flow.Leave && w.rt.cfg.Policy.MaxRecoveries > 0 {
		s.Op = flow.Excuse
	}
	w.rt.send(q, s)
	j.sent.Store(true)
}

// send gives a settlement to the acker, if the reservation is still this worker's to settle. The channel has
// room for everything in flight, so it never blocks.
func (rt *Router) send(q *Queue, s flow.Settlement) {
	if !s.Reservation.Settle() {
		q.Counters.Late.Add(1) // lost between the start and here (L4, Z4)
		rt.forget(q, s.Reservation)
		return
	}
	q.Out <- s
}

// forget frees the slot of a lost reservation. What Abandon lost has no slot any more: the pool may have
// closed the channel. So the lock is held until it is sent; the channel has room.
func (rt *Router) forget(q *Queue, r *flow.Reservation) {
	q.Counters.Lost.Add(1)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if !rt.abandoned {
		q.Out <- flow.Settlement{Reservation: r, Op: flow.Forget}
	}
}
