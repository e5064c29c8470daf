package router

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// row is one line of the decision table: what happens to a message, and what becomes of it in each layout.
type row struct {
	name     string
	ready    func() string // the text in ready; nil = a first delivery
	policy   Policy
	handler  delivery.HandlerFunc // nil = no handler for the URN
	hardStop bool                 // the pool stops while the handler runs

	legacy, zset *want // nil = the row says nothing of the layout
}

// want is what becomes of a message.
type want struct {
	op    flow.Op
	delay int64
	text  string                                               // of Return and Requeue
	dead  func(handled *delivery.Delivery) envelope.DeadLetter // of DeadLetter, but for time and queue
	count string                                               // counters raised by one
	told  error                                                // what OnError gets, by errors.Is; nil = it is not called
	next  int64                                                // number of the next delivery; 0 = there is none
}

// at makes the text of a row that is no first delivery.
func at(attempts int64) func() string { return func() string { return body(attempts) } }

// check plays a row in a bubble, where timeouts pass at once.
func (w row) check(t *testing.T, layout flow.Layout, want want) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { w.checkInBubble(t, layout, want) })
}

func (w row) checkInBubble(t *testing.T, layout flow.Layout, want want) {
	t.Helper()
	ready := body(0)
	if w.ready != nil {
		ready = w.ready()
	}
	handler := delivery.Handler(NewMux())
	if w.handler != nil {
		handler = w.handler
	}
	g := newRig(1, w.policy, handler, layout)
	r := g.put(0, ready)[0]
	g.end()
	q := &g.cfg.Queues[0]
	handled, err := read(q, r)
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	done := g.running(ctx)
	if w.hardStop {
		synctest.Wait()
		stop(flow.ErrHardStop)
	}
	<-done

	all := g.settlements(0)
	if len(all) != 1 || all[0].Reservation != r || r.State() != flow.Settled {
		t.Fatalf("%d settlements, state %d; want one", len(all), r.State())
	}
	s := all[0]
	text := want.text
	if want.op == flow.DeadLetter {
		record := want.dead(handled)
		record.OriginalQueue, record.FailedAt = "orders", time.Now().UnixMilli()
		text = envelope.DeadLetterRecord(handled.Body, record)
	}
	if s.Op != want.op || s.Delay != want.delay {
		t.Errorf("%s with a delay of %d s, want %s with %d s", s.Op, s.Delay, want.op, want.delay)
	}
	if diff := cmp.Diff(text, s.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if got := nextDelivery(layout, s); got != want.next {
		t.Errorf("the next delivery is number %d after number %d, want %d", got, handled.Number, want.next)
	}
	count := map[string]int64{}
	for name := range strings.FieldsSeq(want.count) {
		count[name] = 1
	}
	if diff := cmp.Diff(count, g.counted(0)); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	checkTold(t, g.reports(), want.told, handled)
}

func checkTold(t *testing.T, calls []told, want error, handled *delivery.Delivery) {
	t.Helper()
	if want == nil {
		if len(calls) != 0 {
			t.Errorf("OnError is told of %v", calls[0].err)
		}
		return
	}
	if len(calls) != 1 || !errors.Is(calls[0].err, want) && want != errAny { //nolint:errorlint // a placeholder
		t.Fatalf("OnError is told %d times: %v; want %v", len(calls), calls, want)
	}
	if c := calls[0]; c.raw != handled.Body || c.env.Meta.ID != "m-1" || c.env.URN != handled.URN {
		t.Errorf("OnError gets %+v and %s", c.env, c.raw)
	}
}

// nextDelivery reserves what a settlement leaves in Redis once more, and is the delivery number its handler
// would see: one more when the settlement charged an attempt (B28). 0 when the message is gone, or is one
// that no reserve script takes.
func nextDelivery(layout flow.Layout, s flow.Settlement) int64 {
	r := s.Reservation
	ready := r.Text // Release moves the member itself, Leave lets it expire
	switch s.Op {
	case flow.Ack, flow.DeadLetter:
		return 0
	case flow.HandBack:
		ready = r.Ready()
	case flow.Return, flow.Requeue:
		ready = s.Text
	case flow.Release, flow.Leave, flow.Excuse, flow.Forget:
	}
	if _, _, err := envelope.RaiseAttempts(ready); err != nil && layout == flow.Zset {
		return 0
	}
	d, err := read(&Queue{Layout: layout}, reserved(0, layout, ready))
	if err != nil {
		return -1
	}
	return d.Number
}

// play runs a table of rows in both layouts.
func play(t *testing.T, rows []row) {
	t.Helper()
	for _, w := range rows {
		for layout, want := range map[flow.Layout]*want{flow.Legacy: w.legacy, flow.Zset: w.zset} {
			if want == nil {
				continue
			}
			t.Run(w.name+"/"+layout.String(), func(t *testing.T) {
				t.Parallel()
				w.check(t, layout, *want)
			})
		}
	}
}

// failed, unknownURN and so on are the dead letters of rows. attempts are those the handler saw.
func failed(text, kind string) func(*delivery.Delivery) envelope.DeadLetter {
	return func(d *delivery.Delivery) envelope.DeadLetter {
		return envelope.DeadLetter{Reason: "failed", Error: &text, Exception: &kind, Attempts: d.Attempts}
	}
}

func unknownURN(d *delivery.Delivery) envelope.DeadLetter {
	return envelope.DeadLetter{Reason: "unknown_urn", Attempts: d.Attempts}
}

var errBoom = errors.New("boom")

const plainError = "*errors.errorString"

func returns(err error) delivery.HandlerFunc {
	return func(context.Context, *delivery.Delivery) error { return err }
}

func panicsWith(value any) delivery.HandlerFunc {
	return func(context.Context, *delivery.Delivery) error { panic(value) }
}

// ended waits until its context has ended for the reason wanted, then does what f does.
func ended(cause error, f func() error) delivery.HandlerFunc {
	return func(ctx context.Context, _ *delivery.Delivery) error {
		<-ctx.Done()
		if got := context.Cause(ctx); !errors.Is(got, cause) {
			return errors.New("context ended for another reason: " + got.Error())
		}
		return f()
	}
}
