package routertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const urn = "urn:babel:orders:created"

var errBoom = errors.New("boom")

func returns(err error) delivery.Handler {
	mux := router.NewMux()
	mux.HandleFunc(urn, func(context.Context, *delivery.Delivery) error { return err })
	return mux
}

// does is a handler that does something else than return.
func does(f func(ctx context.Context)) delivery.Handler {
	mux := router.NewMux()
	mux.HandleFunc(urn, func(ctx context.Context, _ *delivery.Delivery) error { f(ctx); return nil })
	return mux
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	two := 2.0
	young, old := time.Now(), time.Now().Add(-24*time.Hour)
	policy := router.Policy{
		MaxAttempts: 3, LegacyRetry: router.Requeue, Delay: router.Delay{Fixed: &two}, UnknownURNMaxAge: time.Hour, UnknownURNDelay: time.Second,
	}
	with := func(change func(p *router.Policy)) router.Policy { p := policy; change(&p); return p }
	for name, tc := range map[string]struct {
		message      Message
		policy       router.Policy
		handler      delivery.Handler
		legacy, zset string // Outcome.String
		next         [2]int64
		ran, failed  bool
	}{
		"ack":                  {Message{URN: urn}, policy, returns(nil), "acked", "acked", [2]int64{}, true, false},
		"failure":              {Message{URN: urn}, policy, returns(errBoom), "requeued, charged: boom", "released for 2s, charged: boom", [2]int64{2, 2}, true, true},
		"left":                 {Message{URN: urn}, router.Policy{}, returns(errBoom), "left: boom", "left, charged: boom", [2]int64{1, 2}, true, true},
		"retry after":          {Message{URN: urn}, policy, returns(delivery.RetryAfter(time.Minute, errBoom)), "requeued, charged: retry after 1m0s: boom", "released for 1m0s, charged: retry after 1m0s: boom", [2]int64{2, 2}, true, true},
		"dead letter":          {Message{URN: urn}, policy, returns(delivery.DeadLetter(errBoom)), "dead-lettered as failed: dead-letter: boom", "dead-lettered as failed: dead-letter: boom", [2]int64{}, true, true},
		"last attempt":         {Message{URN: urn, Attempts: 2}, policy, returns(errBoom), "dead-lettered as failed: boom", "dead-lettered as failed: boom", [2]int64{}, true, true},
		"last but one":         {Message{URN: urn, Attempts: 1}, policy, returns(errBoom), "requeued, charged: boom", "released for 2s, charged: boom", [2]int64{3, 3}, true, true},
		"panic":                {Message{URN: urn}, policy, does(func(context.Context) { panic("kaboom") }), "requeued, charged: panic: kaboom", "released for 2s, charged: panic: kaboom", [2]int64{2, 2}, true, true},
		"goexit":               {Message{URN: urn}, policy, does(func(context.Context) { runtime.Goexit() }), "requeued, charged: " + router.ErrExited.Error(), "released for 2s, charged: " + router.ErrExited.Error(), [2]int64{2, 2}, true, true},
		"unknown URN":          {Message{URN: "urn:x"}, policy, returns(nil), "dead-lettered as unknown_urn: " + router.ErrUnknownURN.Error(), "dead-lettered as unknown_urn: " + router.ErrUnknownURN.Error(), [2]int64{}, true, false},
		"unknown URN, hook":    {Message{URN: "urn:x"}, with(func(p *router.Policy) { p.OnUnknownURN = hook(nil) }), returns(nil), "acked", "acked", [2]int64{}, true, false},
		"unknown URN, failing": {Message{URN: "urn:x"}, with(func(p *router.Policy) { p.OnUnknownURN = hook(errBoom) }), returns(nil), "requeued, charged: boom", "released for 2s, charged: boom", [2]int64{2, 2}, true, true},
		"unknown URN, young":   {Message{URN: "urn:x", CreatedAt: young}, with(func(p *router.Policy) { p.UnknownURN = router.UnknownRelease }), returns(nil), "left: " + router.ErrUnknownURN.Error(), "returned for 1s: " + router.ErrUnknownURN.Error(), [2]int64{1, 1}, true, false},
		"unknown URN, old":     {Message{URN: "urn:x", CreatedAt: old}, with(func(p *router.Policy) { p.UnknownURN = router.UnknownRelease }), returns(nil), "dead-lettered as unknown_urn: " + router.ErrUnknownURN.Error(), "dead-lettered as unknown_urn: " + router.ErrUnknownURN.Error(), [2]int64{}, true, false},
		"poison":               {Message{Text: `{"job":5,"attempts":0}`}, policy, returns(nil), "dead-lettered as poison: ", "dead-lettered as poison: ", [2]int64{}, false, false},
		"no JSON":              {Message{Text: "no JSON"}, policy, returns(nil), "dead-lettered as poison: ", "dead-lettered as poison: ", [2]int64{}, false, false},
	} {
		for layout, want := range map[Layout]string{Legacy: tc.legacy, Zset: tc.zset} {
			t.Run(name+"/"+layout.String(), func(t *testing.T) {
				t.Parallel()
				next := tc.next[0]
				if layout == Zset {
					next = tc.next[1]
				}
				kit := New(Config{Handler: tc.handler, Layout: layout, Policy: tc.policy})
				out := kit.Run(t.Context(), tc.message)
				if got := out.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(want, ": ") && got != want {
					t.Errorf("%q, want %q", got, want)
				}
				if out.Ran != tc.ran || out.Failed != tc.failed {
					t.Errorf("ran %v, failed %v", out.Ran, out.Failed)
				}
				if (out.Next != nil) != (next > 0) {
					t.Fatalf("next %v", out.Next)
				}
				if next > 0 {
					if got := numberOf(t, layout, *out.Next); got != next {
						t.Errorf("the next delivery has number %d, want %d", got, next)
					}
				}
				if (out.Record != "") != (out.Fate == DeadLettered) {
					t.Errorf("record %q", out.Record)
				}
			})
		}
	}
}

// TestCrashedWorkersCount: a zset message that comes with more deliveries behind it than allowed is not run (A1).
func TestCrashedWorkersCount(t *testing.T) {
	t.Parallel()
	kit := New(Config{Handler: returns(nil), Layout: Zset, Policy: router.Policy{MaxAttempts: 3}})
	out := kit.Run(t.Context(), Message{URN: urn, Attempts: 3})
	if out.Ran || !out.Failed || out.Reason != "failed" || !errors.Is(out.Err, router.ErrTooManyAttempts) {
		t.Errorf("%v", out)
	}
}

func hook(err error) func(context.Context, error, envelope.Envelope, string) error {
	return func(context.Context, error, envelope.Envelope, string) error { return err }
}

// numberOf is the delivery number a handler sees.
func numberOf(t *testing.T, layout Layout, m Message) (n int64) {
	t.Helper()
	New(Config{Layout: layout, Handler: delivery.HandlerFunc(func(_ context.Context, d *delivery.Delivery) error {
		n = d.Number
		return nil
	})}).Run(t.Context(), m)
	return n
}

func TestRunToEnd(t *testing.T) {
	t.Parallel()
	for _, layout := range []Layout{Legacy, Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			var numbers []int64
			var headers []map[string]string
			kit := New(Config{
				Layout: layout, Policy: router.Policy{MaxAttempts: 3, LegacyRetry: router.Requeue},
				Handler: delivery.HandlerFunc(func(_ context.Context, d *delivery.Delivery) error {
					numbers, headers = append(numbers, d.Number), append(headers, d.Headers)
					return errBoom
				}),
			})
			all := kit.RunToEnd(t.Context(), Message{URN: urn, Headers: map[string]string{"traceparent": "x"}}, 10)
			if diff := cmp.Diff([]int64{1, 2, 3}, numbers); diff != "" || len(all) != 3 {
				t.Errorf("%d outcomes; numbers (-want +got):\n%s", len(all), diff)
			}
			for _, h := range headers {
				if (h["traceparent"] == "x") != (layout == Legacy) {
					t.Errorf("headers %v", headers)
				}
			}
			if last := all[len(all)-1]; last.Fate != DeadLettered || last.Reason != "failed" || !strings.Contains(last.Record, `"error":"boom"`) {
				t.Errorf("ended %v with %s", last, last.Record)
			}
			if all := kit.RunToEnd(t.Context(), Message{URN: urn}, 2); len(all) != 2 {
				t.Errorf("%d deliveries, want at most 2", len(all))
			}
		})
	}
}

// TestRunOfAStoppingPool: a handler that returns an error after the hard stop has not failed; one out of time has.
func TestRunOfAStoppingPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waits := delivery.HandlerFunc(func(ctx context.Context, _ *delivery.Delivery) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		for _, layout := range []Layout{Legacy, Zset} {
			kit := New(Config{Handler: waits, Layout: layout, Policy: router.Policy{HandlerTimeout: time.Minute}})
			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { stop(flow.ErrHardStop) })
			out := kit.Run(ctx, Message{URN: urn})
			if out.Fate != HandedBack || out.Charged || out.Failed || out.Next == nil || !errors.Is(out.Err, flow.ErrHardStop) {
				t.Errorf("%v: %v", layout, out)
			}
			out = kit.Run(t.Context(), Message{URN: urn})
			if out.Fate != Left || !out.Failed || !errors.Is(out.Err, flow.ErrHandlerTimeout) {
				t.Errorf("%v: %v", layout, out)
			}
		}
	})
}

func TestRunAllRunsAtTheSameTime(t *testing.T) {
	t.Parallel()
	const n = 20
	arrived, open := make(chan struct{}, n), make(chan struct{})
	kit := New(Config{Handler: delivery.HandlerFunc(func(_ context.Context, d *delivery.Delivery) error {
		arrived <- struct{}{}
		if len(arrived) == n {
			close(open)
		}
		<-open
		return errors.New(d.Meta.ID)
	})})
	var messages []Message
	for i := range n {
		messages = append(messages, Message{URN: urn, ID: fmt.Sprint(i)})
	}
	for i, out := range kit.RunAll(t.Context(), messages...) {
		if out.Err == nil || out.Err.Error() != fmt.Sprint(i) {
			t.Errorf("outcome %d is of message %v", i, out.Err)
		}
	}
}

func TestHooksOfThePolicyRun(t *testing.T) {
	t.Parallel()
	var told []string
	kit := New(Config{Handler: returns(errBoom), Queue: "orders", Policy: router.Policy{
		OnError: func(_ context.Context, err error, env envelope.Envelope, _ string) {
			told = append(told, env.Meta.Queue+": "+err.Error())
		},
	}})
	kit.Run(t.Context(), Message{URN: urn})
	if diff := cmp.Diff([]string{"orders: boom"}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1749132727000)
	d := Delivery(Message{
		URN: urn, Data: map[string]any{"order_id": 5}, ID: "m-1", TraceID: "t-1", Attempts: 2, CreatedAt: at,
		Headers: map[string]string{"a": "b"},
	})
	const body = `{"job":"urn:babel:orders:created","trace_id":"t-1","data":{"order_id":5},"meta":{"id":"m-1","queue":"test",` +
		`"lang":"go","schema_version":1,"created_at":1749132727000},"attempts":2}`
	if d.Body != body || d.Number != 3 || d.Headers["a"] != "b" || d.Queue != "test" || d.Data != `{"order_id":5}` {
		t.Errorf("%+v", d)
	}
	if d := Delivery(Message{Text: body}); d.Meta.ID != "m-1" || d.Number != 3 {
		t.Errorf("%+v", d)
	}
}

func TestMistakesPanic(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"no handler":  func() { New(Config{}) },
		"no URN":      func() { Delivery(Message{}) },
		"bad data":    func() { New(Config{Handler: returns(nil)}).Run(t.Context(), Message{URN: urn, Data: []int{1}}) },
		"poison text": func() { Delivery(Message{Text: "x"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "routertest: ") {
					t.Errorf("panicked with %s", text)
				}
			}()
			f()
		})
	}
}
