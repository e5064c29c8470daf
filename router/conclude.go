package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// conclude turns a run's outcome into a settlement, sends it, and reports what there is to report. The
// settlement goes first: a hook that hangs or panics cannot hold a message.
func (w *worker) conclude(ctx context.Context, q *Queue, j *job, d *delivery.Delivery, outcome error) {
	rt, r := w.rt, j.reservation
	if outcome == nil {
		w.settle(q, j, flow.Settlement{Reservation: r, Op: flow.Ack})
		return
	}
	crash, missing := crashed(outcome), unknown(outcome)
	if !crash && errors.Is(context.Cause(ctx), flow.ErrHardStop) {
		// The pool stopped it; that is no failure of the handler (B25, B28).
		w.settle(q, j, flow.Settlement{Reservation: r, Op: flow.HandBack})
		return
	}
	if delay, ok := postponed(outcome); ok && !crash {
		q.Counters.Postponed.Add(1)
		w.settle(q, j, flow.Settlement{Reservation: r, Op: flow.Return, Text: r.Ready(), Delay: delay})
		return
	}
	if missing {
		q.Counters.UnknownURN.Add(1)
	}
	if missing && rt.cfg.Policy.UnknownURN != UnknownFail {
		rt.notices.unknownURN(q.Name, d.URN)
		w.settle(q, j, rt.unknownURN(q, r, d))
	} else {
		q.Counters.Failed.Add(1)
		if crash {
			q.Counters.Panics.Add(1)
		}
		rt.notices.failed(q.Name, d, outcome)
		w.settle(q, j, rt.failure(q, r, d, outcome))
	}
	rt.report(ctx, outcome, d.Envelope, d.Body)
}

// postponed is how long a handler has put its message off (Z7), and whether it has. DeadLetter goes before, as it does before
// RetryAfter.
func postponed(outcome error) (seconds int64, ok bool) {
	var final *delivery.DeadLetterError
	var put *delivery.PostponeError
	if errors.As(outcome, &final) || !errors.As(outcome, &put) {
		return 0, false
	}
	return Seconds(put.Delay.Seconds()), true
}

// failure decides on a message whose handler failed (A1, L6, Z5).
func (rt *Router) failure(q *Queue, r *flow.Reservation, d *delivery.Delivery, err error) flow.Settlement {
	var final *delivery.DeadLetterError
	limit := rt.cfg.Policy.MaxAttempts
	if errors.As(err, &final) || limit > 0 && d.Number >= limit {
		return deadLetter(q, r, d, envelope.ReasonFailed, delivery.Reason(err))
	}
	if q.Layout == flow.Zset {
		if delay, ok := rt.delay(d, err); ok {
			return flow.Settlement{Reservation: r, Op: flow.Release, Delay: delay}
		}
		return flow.Settlement{Reservation: r, Op: flow.Leave}
	}
	if rt.cfg.Policy.LegacyRetry == Requeue {
		raised, editErr := envelope.RequeueEdit(r.Text)
		if editErr != nil {
			return deadLetter(q, r, d, envelope.ReasonFailed, editErr) // attempts at their very end
		}
		return flow.Settlement{Reservation: r, Op: flow.Requeue, Text: raised}
	}
	return flow.Settlement{Reservation: r, Op: flow.Leave}
}

// delay is how long a failed message of a zset queue waits (Z6); false when it is left to its lease.
func (rt *Router) delay(d *delivery.Delivery, err error) (seconds int64, ok bool) {
	var retry *delivery.RetryError
	if errors.As(err, &retry) {
		return Seconds(retry.Delay.Seconds()), true
	}
	delay := rt.cfg.Policy.Delay
	if !delay.Set() {
		return 0, false
	}
	if delay.Policy == nil {
		return delay.For(d.Attempts), true
	}
	if err := guard(func() { seconds = delay.For(d.Attempts) }); err != nil {
		rt.notices.hook("backoff policy failed, messages left to their leases", err, "queue", d.Queue)
		return 0, false
	}
	return seconds, true
}

// unknownURN decides on a message without a handler (D4).
func (rt *Router) unknownURN(q *Queue, r *flow.Reservation, d *delivery.Delivery) flow.Settlement {
	policy := &rt.cfg.Policy
	switch policy.UnknownURN {
	case UnknownDelete:
		return flow.Settlement{Reservation: r, Op: flow.Ack}
	case UnknownRelease:
		age := time.Since(time.UnixMilli(d.Meta.CreatedAt))
		switch {
		case age >= policy.UnknownURNMaxAge:
		case q.Layout == flow.Legacy:
			return flow.Settlement{Reservation: r, Op: flow.Leave}
		default:
			return flow.Settlement{
				Reservation: r, Op: flow.Return, Text: r.Ready(), Delay: Seconds(policy.UnknownURNDelay.Seconds()),
			}
		}
	default:
	}
	return deadLetter(q, r, d, envelope.ReasonUnknownURN, nil)
}

// poison settles a message that is no acceptable envelope: a job of another system (Z8), or poison (D4).
func (w *worker) poison(q *Queue, j *job, err error) {
	rt, r := w.rt, j.reservation
	q.Counters.Poison.Add(1)
	raw := r.Ready()
	strategy := rt.cfg.Policy.Poison
	s := flow.Settlement{Reservation: r, Op: flow.DeadLetter, Reason: flow.Poison, Text: raw}
	body := r.Text
	if frame, framed := envelope.Unframe(body); framed {
		body = frame.Body
	}
	switch {
	case q.Layout == flow.Zset && envelope.IsForeign(body):
		strategy = rt.cfg.Policy.ForeignJobs
		err = fmt.Errorf("router: a job of another system (Z8): %w", err)
	case envelope.IsObject(body):
		s.Text = record(q, body, attemptsOf(body), envelope.ReasonPoison, err)
	}
	if strategy == BadLeave {
		s.Op, s.Text = flow.Leave, ""
	}
	rt.notices.poison(q.Name, err)
	w.settle(q, j, s)
	rt.report(w.ctx, err, envelope.Envelope{}, raw)
}

// attemptsOf is the attempts of a text that no handler sees, so that both counters of its record agree (D2); 0
// where it has none that can be read.
func attemptsOf(text string) int64 {
	_, next, err := envelope.RaiseAttempts(text)
	if err != nil {
		return 0
	}
	return next - 1
}

// deadLetter is the settlement that puts a message in the dead letters; err may be nil.
func deadLetter(q *Queue, r *flow.Reservation, d *delivery.Delivery, reason string, err error) flow.Settlement {
	return flow.Settlement{
		Reservation: r, Op: flow.DeadLetter, Reason: flow.ReasonOf(reason), Text: record(q, d.Body, d.Attempts, reason, err),
	}
}

// record is the dead letter record of a body (D2).
func record(q *Queue, body string, attempts int64, reason string, err error) string {
	dead := envelope.DeadLetter{
		Reason: reason, FailedAt: time.Now().UnixMilli(), OriginalQueue: q.Name, Attempts: attempts,
	}
	if err != nil {
		text, kind := err.Error(), fmt.Sprintf("%T", err)
		dead.Error, dead.Exception = &text, &kind
	}
	return envelope.DeadLetterRecord(body, dead)
}
