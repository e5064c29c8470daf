package router

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

func exits(context.Context, *delivery.Delivery) error { runtime.Goexit(); return nil }

// faultyError panics when a nil pointer of it is asked for its text, which is what a handler returns that
// declares its result as *faultyError.
type faultyError struct{ text string }

func (e *faultyError) Error() string { return e.text }

// same is the same result in both layouts.
func (w row) same(want want) row {
	w.legacy, w.zset = &want, &want
	return w
}

// left is a failed message left to its lease: recovery counts in zset by itself, and not in legacy (A1).
func (w row) left(count string, told error) row {
	w.legacy = &want{op: flow.Leave, count: count, told: told, next: 1}
	w.zset = &want{op: flow.Leave, count: count, told: told, next: 2}
	return w
}

// put is a message that its handler has put off (Z7): it comes back as it was.
func (w row) put(delay int64) row {
	w.policy.MaxAttempts = 1
	return w.same(want{op: flow.Return, delay: delay, text: body(0), count: "Started Postponed", next: 1})
}

// TestOutcomes is the table of what a handler can do, with no retry configured (A1, L6, Z5, B25, B28).
func TestOutcomes(t *testing.T) {
	t.Parallel()
	var nilError *faultyError
	minute := Policy{HandlerTimeout: time.Minute}
	fails := func() error { return errBoom }
	succeeds := func() error { return nil }
	const failure, crash = "Started Failed", "Started Failed Panics"
	dead := func(text, kind string) want {
		return want{op: flow.DeadLetter, dead: failed(text, kind), count: failure, told: errBoom}
	}
	play(t, []row{
		row{name: "success", handler: returns(nil)}.same(want{op: flow.Ack, count: "Started"}),
		row{name: "error", handler: returns(errBoom)}.left(failure, errBoom),
		row{name: "panic", handler: panicsWith("kaboom")}.left(crash, errAny),
		row{name: "panic with an error", handler: panicsWith(errBoom)}.left(crash, errBoom),
		row{name: "panic with nil", handler: panicsWith(nil)}.left(crash, errAny),
		row{name: "Goexit", handler: exits}.left(crash, ErrExited),
		row{name: "error that panics", handler: returns(nilError)}.left(crash, errAny),

		row{name: "timeout, then an error", policy: minute, handler: ended(flow.ErrHandlerTimeout, fails)}.left(failure, errBoom),
		row{name: "timeout, then success", policy: minute, handler: ended(flow.ErrHandlerTimeout, succeeds)}.
			same(want{op: flow.Ack, count: "Started"}),
		row{name: "timeout, then a panic", policy: minute, handler: ended(flow.ErrHandlerTimeout, func() error { panic(1) })}.
			left(crash, errAny),

		// The pool stopped it: not a failure, and not charged, whatever error comes of it.
		row{name: "hard stop, then an error", hardStop: true, handler: ended(flow.ErrHardStop, fails)}.
			same(want{op: flow.HandBack, count: "Started", next: 1}),
		row{name: "hard stop, then a dead letter", hardStop: true, handler: ended(flow.ErrHardStop, func() error {
			return delivery.DeadLetter(errBoom)
		})}.same(want{op: flow.HandBack, count: "Started", next: 1}),
		row{name: "hard stop, then unknown", hardStop: true, handler: ended(flow.ErrHardStop, func() error {
			return ErrUnknownURN
		})}.same(want{op: flow.HandBack, count: "Started", next: 1}),
		row{name: "hard stop at the last attempt", hardStop: true, policy: Policy{MaxAttempts: 1}, handler: ended(flow.ErrHardStop, fails)}.
			same(want{op: flow.HandBack, count: "Started", next: 1}),
		row{name: "hard stop, then success", hardStop: true, handler: ended(flow.ErrHardStop, succeeds)}.
			same(want{op: flow.Ack, count: "Started"}),
		row{name: "hard stop, then a panic", hardStop: true, handler: ended(flow.ErrHardStop, func() error { panic(errBoom) })}.
			left(crash, errBoom),
		row{name: "hard stop, then Goexit", hardStop: true, handler: ended(flow.ErrHardStop, func() error { runtime.Goexit(); return nil })}.
			left(crash, ErrExited),

		// Put off: no failure, nobody is told, and the next delivery has the same number.
		row{name: "postponed", handler: returns(fmt.Errorf("limit: %w", delivery.Postpone(1200*time.Millisecond, errBoom)))}.
			put(2),
		row{name: "postponed for no time", handler: returns(delivery.Postpone(-1, nil))}.put(0),
		row{name: "postponed for ever", handler: returns(delivery.Postpone(1<<62, nil))}.put(30 * 24 * 3600),
		row{name: "postponed, then a hard stop", hardStop: true, handler: ended(flow.ErrHardStop, func() error { return delivery.Postpone(1, nil) })}.
			same(want{op: flow.HandBack, count: "Started", next: 1}),
		row{name: "postponed by a panic", handler: panicsWith(delivery.Postpone(1, nil))}.left(crash, errAny),
		row{name: "dead letter of a postponement", handler: returns(delivery.DeadLetter(delivery.Postpone(1, errBoom)))}.
			same(dead("postponed for 1ns: boom", "*delivery.PostponeError")),

		row{name: "dead letter", handler: returns(delivery.DeadLetter(errBoom))}.same(dead("boom", plainError)),
		row{name: "dead letter inside", handler: returns(fmt.Errorf("handling: %w", delivery.DeadLetter(errBoom)))}.same(dead("boom", plainError)),
		row{name: "dead letter without a reason", handler: returns(delivery.DeadLetter(nil))}.same(want{
			op: flow.DeadLetter, dead: failed("dead-letter", "*delivery.DeadLetterError"), count: failure, told: errAny,
		}),
	})
}

// errAny stands for an error of any kind in told.
var errAny = errors.New("any error")

// TestMaxAttempts holds A1 at its edges.
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	three := Policy{MaxAttempts: 3, LegacyRetry: Requeue}
	const failure, crash = "Started Failed", "Started Failed Panics"
	dead := func(text, kind, count string, told error) want {
		return want{op: flow.DeadLetter, dead: failed(text, kind), count: count, told: told}
	}
	boom := dead("boom", plainError, failure, errBoom)
	tooMany := dead(ErrTooManyAttempts.Error(), plainError, "Failed", ErrTooManyAttempts)
	frame := func() string { return strings.TrimSuffix(framed(body(0)), "}") + `,"attempts":3}` }
	huge := strings.Repeat("x", 3*envelope.MaxErrorText)
	play(t, []row{
		{
			name: "one before the last", ready: at(1), policy: three, handler: returns(errBoom),
			legacy: &want{op: flow.Requeue, text: body(2), count: failure, told: errBoom, next: 3},
			zset:   &want{op: flow.Leave, count: failure, told: errBoom, next: 3},
		},
		row{name: "the last", ready: at(2), policy: three, handler: returns(errBoom)}.same(boom),
		row{name: "the last, a success", ready: at(2), policy: three, handler: returns(nil)}.same(want{op: flow.Ack, count: "Started"}),
		row{name: "the last, asks for a retry", ready: at(2), policy: three, handler: returns(delivery.RetryAfter(time.Second, errBoom))}.same(boom),
		row{name: "the only one", policy: Policy{MaxAttempts: 1, LegacyRetry: Requeue}, handler: returns(errBoom)}.same(boom),
		row{name: "the last panics", ready: at(2), policy: three, handler: panicsWith("kaboom")}.
			same(dead("panic: kaboom", "*router.PanicError", crash, errAny)),
		row{name: "the last exits", ready: at(2), policy: three, handler: exits}.
			same(dead(ErrExited.Error(), plainError, crash, ErrExited)),
		row{name: "the last panics at length", ready: at(2), policy: three, handler: panicsWith(huge)}.
			same(dead(("panic: " + huge)[:envelope.MaxErrorText], "*router.PanicError", crash, errAny)), // B20
		{
			// Workers died over it: only the zset layout can know.
			name: "beyond the last", ready: at(3), policy: three, handler: returns(errBoom), legacy: &boom, zset: &tooMany,
		},
		{
			name: "beyond the last, would succeed", ready: at(3), policy: three, handler: returns(nil),
			legacy: &want{op: flow.Ack, count: "Started"}, zset: &tooMany,
		},
		{name: "beyond the last, framed", ready: frame, policy: three, handler: returns(nil), zset: &tooMany}, // F4
		{name: "never", ready: at(1e6), handler: returns(errBoom), zset: &want{
			op: flow.Leave, count: failure, told: errBoom, next: 1e6 + 2,
		}},
	})
}

// TestAttemptsAtTheirEnd fails messages whose counter cannot grow, or only once more.
func TestAttemptsAtTheirEnd(t *testing.T) {
	t.Parallel()
	endless := Policy{MaxAttempts: math.MaxInt64, LegacyRetry: Requeue}
	const failure = "Started Failed"
	boom := &want{op: flow.DeadLetter, dead: failed("boom", plainError), count: failure, told: errBoom}
	_, editErr := envelope.RequeueEdit(body(envelope.MaxCounter))
	play(t, []row{
		{name: "one below", ready: at(envelope.MaxCounter - 1), policy: endless, handler: returns(errBoom), legacy: &want{
			op: flow.Requeue, text: body(envelope.MaxCounter), count: failure, told: errBoom, next: envelope.MaxCounter + 1,
		}},
		{name: "at the end", ready: at(envelope.MaxCounter), policy: endless, handler: returns(errBoom), legacy: &want{
			op: flow.DeadLetter, dead: failed(editErr.Error(), "*fmt.wrapError"), count: failure, told: errBoom,
		}},
		{name: "the last", ready: at(envelope.MaxCounter - 1), policy: endless, handler: returns(errBoom), zset: &want{
			op: flow.Leave, count: failure, told: errBoom, // and the next reserve buries it (Z3)
		}},
		// One more than these overflows: it must not count as a first delivery.
		{name: "the largest integer", ready: at(math.MaxInt64), policy: endless, handler: returns(errBoom), legacy: boom},
		{
			name: "the largest integer, few allowed", ready: at(math.MaxInt64), policy: Policy{MaxAttempts: 3, LegacyRetry: Requeue},
			handler: returns(errBoom), legacy: boom,
		},
	})
}

// TestRetries holds how a failed message waits (L6, Z5, Z6).
func TestRetries(t *testing.T) {
	t.Parallel()
	zero, some := 0.0, 2.5
	const failure = "Started Failed"
	requeue := Policy{MaxAttempts: 5, LegacyRetry: Requeue}
	leave := &want{op: flow.Leave, count: failure, told: errBoom, next: 1}
	release := func(delay int64) *want {
		return &want{op: flow.Release, delay: delay, count: failure, told: errBoom, next: 2}
	}
	after := func(d time.Duration) delivery.HandlerFunc { return returns(delivery.RetryAfter(d, errBoom)) }
	fixed := func(d *float64) Policy { return Policy{Delay: Delay{Fixed: d}} }
	tenfold := Policy{Delay: Delay{Policy: func(k int64) float64 { return 10 * float64(k) }}}
	doubled := Policy{Delay: Delay{Backoff: Backoff{Base: 2 * time.Second, Multiplier: 2}}}
	play(t, []row{
		{name: "RetryAfter", handler: after(1200 * time.Millisecond), legacy: leave, zset: release(2)},
		{name: "RetryAfter at once", handler: after(0), legacy: leave, zset: release(0)},
		{name: "RetryAfter below zero", handler: after(-time.Hour), legacy: leave, zset: release(0)},
		{name: "RetryAfter for ever", handler: after(math.MaxInt64), legacy: leave, zset: release(2592000)},
		{name: "RetryAfter goes before the failure delay", policy: fixed(&some), handler: after(time.Minute), zset: release(60)},
		{name: "RetryAfter inside", handler: returns(fmt.Errorf("x: %w", delivery.RetryAfter(time.Minute, errBoom))), zset: release(60)},
		{
			name: "RetryAfter with Requeue", policy: requeue, handler: after(time.Minute), zset: release(60),
			legacy: &want{op: flow.Requeue, text: body(1), count: failure, told: errBoom, next: 2},
		},
		{name: "failure delay 0", policy: fixed(&zero), handler: returns(errBoom), legacy: leave, zset: release(0)},
		{name: "failure delay", policy: fixed(&some), handler: returns(errBoom), legacy: leave, zset: release(3)},
		{
			name: "policy", ready: at(4), policy: tenfold, handler: returns(errBoom),
			legacy: &want{op: flow.Leave, count: failure, told: errBoom, next: 5},
			zset:   &want{op: flow.Release, delay: 50, count: failure, told: errBoom, next: 6}, // the handler saw 5
		},
		{
			name: "backoff", ready: at(2), policy: doubled, handler: returns(errBoom),
			legacy: &want{op: flow.Leave, count: failure, told: errBoom, next: 3},
			zset:   &want{op: flow.Release, delay: 8, count: failure, told: errBoom, next: 4},
		},
		{
			name: "policy panics", policy: Policy{Delay: Delay{Policy: func(int64) float64 { panic("kaboom") }}},
			handler: returns(errBoom), zset: &want{op: flow.Leave, count: failure, told: errBoom, next: 2},
		},
		{
			name: "policy exits", policy: Policy{Delay: Delay{Policy: func(int64) float64 { runtime.Goexit(); return 0 }}},
			handler: returns(errBoom), zset: &want{op: flow.Leave, count: failure, told: errBoom, next: 2},
		},
		{
			name: "Requeue inside a frame", ready: func() string { return framed(body(3)) }, policy: requeue, handler: returns(errBoom),
			legacy: &want{op: flow.Requeue, text: framed(body(4)), count: failure, told: errBoom, next: 5}, // F3
		},
		{
			name: "a frame dead-letters its body", ready: func() string { return framed(body(0)) },
			handler: returns(delivery.DeadLetter(errBoom)),
			legacy:  &want{op: flow.DeadLetter, dead: failed("boom", plainError), count: failure, told: errBoom}, // D2
			zset:    &want{op: flow.DeadLetter, dead: failed("boom", plainError), count: failure, told: errBoom},
		},
		{
			name: "a frame goes back whole", ready: func() string { return framed(body(0)) }, hardStop: true,
			handler: ended(flow.ErrHardStop, func() error { return errBoom }),
			legacy:  &want{op: flow.HandBack, count: "Started", next: 1},
			zset:    &want{op: flow.HandBack, count: "Started", next: 1}, // F4
		},
	})
}
