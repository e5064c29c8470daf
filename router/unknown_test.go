package router

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// TestUnknownURN is the table of D4 without a hook.
func TestUnknownURN(t *testing.T) {
	t.Parallel()
	aged := func(age time.Duration) func() string {
		return func() string { return bodyOf(urn, 0, time.Now().Add(-age)) }
	}
	release := Policy{UnknownURN: UnknownRelease, UnknownURNDelay: 1500 * time.Millisecond, UnknownURNMaxAge: time.Hour}
	const count = "Started UnknownURN"
	dead := want{op: flow.DeadLetter, dead: unknownURN, count: count, told: ErrUnknownURN}
	rows := []row{
		row{name: "default"}.same(dead),
		row{name: "default, framed", ready: func() string { return framed(body(0)) }}.same(dead),
		row{name: "delete", policy: Policy{UnknownURN: UnknownDelete}}.
			same(want{op: flow.Ack, count: count, told: ErrUnknownURN}),
		row{name: "release, too old", ready: aged(time.Hour), policy: release}.same(dead),
		row{name: "release, without a time", ready: func() string { return bodyOf(urn, 0, time.UnixMilli(0)) }, policy: release}.same(dead),
		row{name: "fail", policy: Policy{UnknownURN: UnknownFail}}.left(count+" Failed", ErrUnknownURN),
		row{name: "fail at the last attempt", policy: Policy{UnknownURN: UnknownFail, MaxAttempts: 1, LegacyRetry: Requeue}}.
			same(want{
				op: flow.DeadLetter, dead: failed(ErrUnknownURN.Error(), plainError), count: count + " Failed", told: ErrUnknownURN,
			}),
	}
	for name, age := range map[string]time.Duration{
		"release, young": 0, "release, a moment before its time": time.Hour - time.Millisecond, "release, from the future": -time.Hour,
	} {
		rows = append(rows, row{
			name: name, ready: aged(age), policy: release,
			legacy: &want{op: flow.Leave, count: count, told: ErrUnknownURN, next: 1},
			zset:   nil, // its text depends on the bubble's time; see below
		})
	}
	play(t, rows)
}

// TestUnknownURNRelease gives back the ready text, framed or not, and charges nothing (Z7).
func TestUnknownURNRelease(t *testing.T) {
	t.Parallel()
	for _, frame := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			text := bodyOf(urn, 7, time.Now().Add(-time.Hour+time.Millisecond))
			if frame {
				text = framed(text)
			}
			row{
				ready:  func() string { return text },
				policy: Policy{UnknownURN: UnknownRelease, UnknownURNDelay: 1500 * time.Millisecond, UnknownURNMaxAge: time.Hour},
			}.checkInBubble(t, flow.Zset, want{
				op: flow.Return, delay: 2, text: text, count: "Started UnknownURN", told: ErrUnknownURN,
				next: map[bool]int64{false: 8, true: 1}[frame],
			})
		})
	}
}

// TestOnUnknownURN is the table of D4 with a hook; the strategies do not matter then.
func TestOnUnknownURN(t *testing.T) {
	t.Parallel()
	type hook = func(ctx context.Context, err error, env envelope.Envelope, raw string) error
	const count, failure, crash = "Started UnknownURN", "Started UnknownURN Failed", "Started UnknownURN Failed Panics"
	var rows []row
	for _, strategy := range []UnknownURN{UnknownDeadLetter, UnknownDelete, UnknownRelease, UnknownFail} {
		with := func(name string, h hook) row {
			return row{name: name, policy: Policy{UnknownURN: strategy, OnUnknownURN: h}}
		}
		rows = append(rows,
			with("success", func(context.Context, error, envelope.Envelope, string) error { return nil }).
				same(want{op: flow.Ack, count: count}),
			with("error", func(context.Context, error, envelope.Envelope, string) error { return errBoom }).left(failure, errBoom),
			with("panic", func(context.Context, error, envelope.Envelope, string) error { panic(errBoom) }).left(crash, errBoom),
			with("panic with unknown", func(context.Context, error, envelope.Envelope, string) error { panic(ErrUnknownURN) }).
				left(crash, ErrUnknownURN),
			with("Goexit", func(context.Context, error, envelope.Envelope, string) error { runtime.Goexit(); return nil }).
				left(crash, ErrExited),
			with("dead letter", func(context.Context, error, envelope.Envelope, string) error { return delivery.DeadLetter(errBoom) }).
				same(want{op: flow.DeadLetter, dead: failed("boom", plainError), count: failure, told: errBoom}),
			// Not unknown any more: the hook was its handler.
			with("unknown itself", func(_ context.Context, err error, _ envelope.Envelope, _ string) error { return err }).
				left(failure, errAny),
		)
		retry := with("retry", func(context.Context, error, envelope.Envelope, string) error {
			return delivery.RetryAfter(3*time.Second, errBoom)
		})
		retry.zset = &want{op: flow.Release, delay: 3, count: failure, told: errBoom, next: 2}
		stopped := with("hard stop", func(ctx context.Context, _ error, _ envelope.Envelope, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}).same(want{op: flow.HandBack, count: count, next: 1})
		stopped.hardStop = true
		rows = append(rows, retry, stopped)
	}
	rows = append(rows, row{
		// A handler that knows the URN and panics with the error of one that does not.
		name: "a handler's panic is no unknown URN", handler: panicsWith(ErrUnknownURN),
		policy: Policy{OnUnknownURN: func(context.Context, error, envelope.Envelope, string) error { return nil }},
	}.left("Started Failed Panics", ErrUnknownURN))
	play(t, rows)
}

// TestOnUnknownURNSeesTheMessage gives the hook what a handler gets, but for the frame.
func TestOnUnknownURNSeesTheMessage(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		calls := 0
		g := newRig(1, Policy{OnUnknownURN: func(_ context.Context, err error, env envelope.Envelope, raw string) error {
			calls++
			want := body(0)
			if layout == flow.Zset {
				want = body(1)
			}
			if !errors.Is(err, ErrUnknownURN) || env.URN != urn || env.Meta.ID != "m-1" || raw != want {
				t.Errorf("%s: got %v, %+v, %s", layout, err, env, raw)
			}
			return nil
		}}, NewMux(), layout)
		g.put(0, body(0))
		g.end()
		if err := g.Run(t.Context()); err != nil || calls != 1 {
			t.Errorf("%s: %d calls, %v", layout, calls, err)
		}
	}
}
