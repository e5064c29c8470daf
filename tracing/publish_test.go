package tracing_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/tracing"
)

// call is a way to publish one message.
type call struct {
	name    string
	layouts []publisher.Layout
	do      func(ctx context.Context, p *tracing.Publisher, a *at, opts ...publisher.Option) (string, error)
	header  bool // it carries one in the legacy layout
}

var both = []publisher.Layout{publisher.Legacy, publisher.Zset}

func calls() []call {
	return []call{
		{"Publish", both, func(ctx context.Context, p *tracing.Publisher, _ *at, opts ...publisher.Option) (string, error) {
			return p.Publish(ctx, " "+urn, nil, opts...)
		}, true},
		{"PublishWithHeaders", both, func(ctx context.Context, p *tracing.Publisher, _ *at, opts ...publisher.Option) (string, error) {
			return p.PublishWithHeaders(ctx, map[string]string{"tenant": "7"}, urn, nil, opts...)
		}, true},
		{"PublishDelayed", both[1:], func(ctx context.Context, p *tracing.Publisher, a *at, opts ...publisher.Option) (string, error) {
			id, err := p.PublishDelayed(ctx, time.Minute, urn, nil, opts...)
			for _, text := range a.rdb.ZRange(ctx, a.key+":delayed", 0, -1).Val() {
				a.rdb.RPush(ctx, a.key, text)
			}
			return id, err
		}, false},
		{"PublishIn", both, func(ctx context.Context, p *tracing.Publisher, a *at, opts ...publisher.Option) (id string, err error) {
			_, execErr := a.rdb.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				id, err = p.PublishIn(ctx, pipe, urn, nil, opts...)
				return nil
			})
			return id, errors.Join(err, execErr)
		}, false},
		{"PublishBatch", both, func(ctx context.Context, p *tracing.Publisher, _ *at, opts ...publisher.Option) (string, error) {
			var e envelope.Envelope
			for _, opt := range opts {
				opt(&e)
			}
			results, err := p.PublishBatch(ctx, []publisher.Message{{URN: urn, ID: e.Meta.ID, TraceID: e.TraceID}})
			return results[0].ID, err
		}, true},
		{"PublishEnvelope", both, func(ctx context.Context, p *tracing.Publisher, _ *at, opts ...publisher.Option) (string, error) {
			e, err := envelope.New(urn, "orders", nil, append([]publisher.Option{publisher.WithTraceID(traceID)}, opts...)...)
			if err != nil {
				return "", err
			}
			return e.Meta.ID, p.PublishEnvelope(ctx, e)
		}, false},
	}
}

// Every way to publish makes one span of the contract's name and attributes, and stores a message that carries it.
func TestPublishSpans(t *testing.T) {
	t.Parallel()
	for _, c := range calls() {
		for _, layout := range c.layouts {
			t.Run(c.name+" "+layout.String(), func(t *testing.T) {
				t.Parallel()
				spans, cfg := kept(t)
				a := queue(t, layout)
				id, err := c.do(t.Context(), tracing.NewPublisher(a.plain, cfg), a, publisher.WithTraceID(traceID))
				if err != nil {
					t.Fatal(err)
				}
				span := only(t, spans)
				want := map[string]any{
					"messaging.system": "babelqueue", "messaging.operation": "publish", "messaging.destination.name": urn,
					"messaging.message.id": id, "messaging.message.conversation_id": traceID, "messaging.babelqueue.attempts": int64(0),
				}
				if diff := cmp.Diff(want, attributes(span.Attributes)); diff != "" || span.Name != "publish "+urn || span.SpanKind != trace.SpanKindProducer {
					t.Error(span.Name, span.SpanKind, diff)
				}
				// Without a span in the context it is in the trace of its trace_id.
				if span.Parent.SpanID().String() != derivedSpan || span.SpanContext.TraceID().String() != derivedTrace {
					t.Errorf("parent %+v", span.Parent)
				}
				all, headers := a.stored(t)
				if len(all) != 1 || all[0].Meta.ID != id || all[0].TraceID != traceID || all[0].URN != urn {
					t.Fatalf("stored %+v", all)
				}
				wantHeaders := map[string]string(nil)
				if c.header && layout == publisher.Legacy {
					wantHeaders = map[string]string{"traceparent": traceparentOf(span.SpanContext)}
					if c.name == "PublishWithHeaders" {
						wantHeaders["tenant"] = "7"
					}
				}
				if diff := cmp.Diff(wantHeaders, headers[0]); diff != "" {
					t.Error(diff)
				}
				// In the zset layout only headers of the caller's own are worth a word (F4).
				if said := len(a.logs.Lines()); (said > 0) != (layout == publisher.Zset && c.name == "PublishWithHeaders") {
					t.Errorf("logged %q", a.logs.Lines())
				}
			})
		}
	}
}

// Every way to publish that fails has a span that says so, and the error and the id are those of the publisher.
func TestPublishFailures(t *testing.T) {
	t.Parallel()
	for _, c := range calls() {
		if c.name == "PublishEnvelope" {
			continue // it has no options; below
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spans, cfg := kept(t)
			a := queue(t, c.layouts[0])
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errBoom)
			id, err := c.do(ctx, tracing.NewPublisher(a.plain, cfg), a, publisher.WithID("x"))
			if id != "x" || err == nil {
				t.Fatalf("%q, %v", id, err)
			}
			span := only(t, spans)
			if c.name == "PublishIn" { // what fails is the Exec, which comes after
				if span.Status != (sdk.Status{}) {
					t.Errorf("status %+v", span.Status)
				}
				return
			}
			if !errors.Is(err, publisher.ErrNotSent) || span.Status.Description == "" || len(span.Events) != 1 ||
				attributes(span.Attributes)["messaging.message.id"] != "x" {
				t.Errorf("%v; %+v", err, span)
			}
		})
	}
	spans, cfg := kept(t)
	p := tracing.NewPublisher(queue(t, publisher.Legacy).plain, cfg)
	if err := p.PublishEnvelope(t.Context(), envelope.Envelope{URN: urn, Attempts: 3}); !errors.Is(err, publisher.ErrEncode) {
		t.Errorf("got %v", err)
	}
	if span := only(t, spans); span.Status.Description == "" || attributes(span.Attributes)["messaging.babelqueue.attempts"] != int64(3) {
		t.Errorf("%+v", span)
	}
}

// The trace_id is the caller's, else that of the message that is being handled, else the trace's own; and the parent the
// context's span, else that of a header, else the one derived from the trace_id.
func TestTraceIDOfAPublish(t *testing.T) {
	t.Parallel()
	const own = "11111111-2222-4333-8444-555555555555"
	for _, tc := range []struct {
		name               string
		handled, span      bool              // the context is a handler's; has a span of the program's own
		came               map[string]string // headers of the handled message
		opts               []publisher.Option
		headers            map[string]string
		wantID, wantParent string // "" = the span's own; "span" = the program's own
	}{
		{name: "nothing given"},
		{name: "in a span", span: true, wantParent: "span"},
		{name: "a trace_id", opts: []publisher.Option{publisher.WithTraceID(traceID)}, wantID: traceID, wantParent: derivedSpan},
		{name: "a blank trace_id", opts: []publisher.Option{publisher.WithTraceID(" ")}},
		{name: "a trace_id in a span", span: true, opts: []publisher.Option{publisher.WithTraceID(own)}, wantID: own, wantParent: "span"},
		{name: "in a handler", handled: true, wantID: traceID, wantParent: "span"},
		{name: "in a handler of another trace", handled: true, came: map[string]string{"traceparent": traceparent}, wantID: traceID, wantParent: "span"},
		{name: "a trace_id in a handler", handled: true, opts: []publisher.Option{publisher.WithTraceID(own)}, wantID: own, wantParent: "span"},
		{name: "a header", headers: map[string]string{"traceparent": traceparent}, wantParent: "b7ad6b7169203331"},
		{
			name: "a header and a trace_id", headers: map[string]string{"traceparent": traceparent},
			opts: []publisher.Option{publisher.WithTraceID(own)}, wantID: own, wantParent: "b7ad6b7169203331",
		},
		{name: "a header in a span", span: true, headers: map[string]string{"traceparent": traceparent, "tracestate": "a=1"}, wantParent: "span"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, batch := range []bool{false, true} {
				spans, cfg := kept(t)
				a := queue(t, publisher.Legacy)
				p := tracing.NewPublisher(a.plain, cfg)
				given := maps.Clone(tc.headers)
				var outer trace.SpanContext
				publish := func(ctx context.Context, _ *delivery.Delivery) error {
					outer = trace.SpanContextFromContext(ctx)
					if !batch {
						_, err := p.PublishWithHeaders(ctx, tc.headers, urn, nil, tc.opts...)
						return err
					}
					var e envelope.Envelope
					for _, opt := range tc.opts {
						opt(&e)
					}
					messages := []publisher.Message{{URN: urn, TraceID: e.TraceID, Headers: tc.headers}}
					_, err := p.PublishBatch(ctx, messages)
					if messages[0].TraceID != e.TraceID {
						t.Error("the message given was changed")
					}
					return err
				}
				ctx := t.Context()
				if tc.span {
					var span trace.Span
					ctx, span = cfg.TracerProvider.Tracer("").Start(ctx, "outer")
					defer span.End()
				}
				run := publish
				if tc.handled {
					run = tracing.Middleware(cfg)(delivery.HandlerFunc(publish)).Handle
				}
				if err := run(ctx, message(func(d *delivery.Delivery) { d.Headers = tc.came })); err != nil {
					t.Fatal(err)
				}
				span := spans.GetSpans()[0]
				all, headers := a.stored(t)
				wantID, wantParent := tc.wantID, tc.wantParent
				if id := span.SpanContext.TraceID().String(); wantID == "" {
					wantID = id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
				}
				switch wantParent {
				case "":
					wantParent = trace.SpanID{}.String()
				case "span":
					wantParent = outer.SpanID().String()
				}
				if all[0].TraceID != wantID || attributes(span.Attributes)["messaging.message.conversation_id"] != wantID {
					t.Errorf("batch %t: trace_id %s, want %s", batch, all[0].TraceID, wantID)
				}
				if got := span.Parent.SpanID().String(); got != wantParent {
					t.Errorf("batch %t: parent %s, want %s", batch, got, wantParent)
				}
				if diff := cmp.Diff(map[string]string{"traceparent": traceparentOf(span.SpanContext)}, headers[0]); diff != "" {
					t.Errorf("batch %t: %s", batch, diff)
				}
				if diff := cmp.Diff(given, tc.headers); diff != "" {
					t.Errorf("the headers given were changed: %s", diff)
				}
			}
		})
	}
}

// Each message of a batch has a span, with its own result.
func TestPublishBatch(t *testing.T) {
	t.Parallel()
	spans, cfg := kept(t)
	a := queue(t, publisher.Legacy)
	given := []publisher.Message{{URN: "urn:one", ID: "1", TraceID: traceID}, {URN: ""}, {URN: "urn:three", ID: "3"}}
	before := append([]publisher.Message(nil), given...)
	results, err := tracing.NewPublisher(a.plain, cfg).PublishBatch(t.Context(), given)
	if !errors.Is(err, publisher.ErrEncode) || len(results) != 3 || results[0].Err != nil || results[1].Err == nil || results[2].Err != nil {
		t.Fatalf("%v, %v", results, err)
	}
	if diff := cmp.Diff(before, given); diff != "" {
		t.Error(diff)
	}
	all, headers := a.stored(t)
	stubs := spans.GetSpans()
	if len(stubs) != 3 || len(all) != 2 {
		t.Fatalf("%d spans, %d messages", len(stubs), len(all))
	}
	for i, name := range []string{"publish urn:one", "publish ", "publish urn:three"} {
		if stubs[i].Name != name || (stubs[i].Status.Description != "") != (i == 1) {
			t.Errorf("%q: %+v", stubs[i].Name, stubs[i].Status)
		}
	}
	for i, stub := range []int{0, 2} {
		if headers[i]["traceparent"] != traceparentOf(stubs[stub].SpanContext) ||
			attributes(stubs[stub].Attributes)["messaging.message.id"] != all[i].Meta.ID {
			t.Errorf("message %d: %v", i, headers[i])
		}
	}
	if _, err := tracing.NewPublisher(a.plain, cfg).PublishBatch(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// bomb is data that cannot be encoded.
type bomb struct{}

func (bomb) MarshalJSON() ([]byte, error) { panic("tick") }

// A panic in the caller's data goes on to the caller, and no span stays open.
func TestPublishPanics(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(p *tracing.Publisher) error{
		"one": func(p *tracing.Publisher) error { _, err := p.Publish(context.Background(), urn, bomb{}); return err },
		"batch": func(p *tracing.Publisher) error {
			_, err := p.PublishBatch(context.Background(), []publisher.Message{{URN: urn, Data: bomb{}}})
			return err
		},
	} {
		spans, cfg := kept(t)
		p := tracing.NewPublisher(queue(t, publisher.Legacy).plain, cfg)
		if got := ends(func() error { return f(p) }); got != "panic: tick" {
			t.Errorf("%s ended with %q", name, got)
		}
		if span := only(t, spans); span.Status.Description != "panic: tick" || len(span.Events) != 1 {
			t.Errorf("%s: %+v", name, span)
		}
	}
}

// With tracing off what is stored is what a plain publisher stores, but for what goes on from somebody else's trace.
func TestPublishWithTracingOff(t *testing.T) {
	t.Parallel()
	for _, layout := range both {
		a := queue(t, layout)
		p := tracing.NewPublisher(a.plain, tracing.Config{TracerProvider: noop.NewTracerProvider()})
		if p.CarriesHeaders() != (layout == publisher.Legacy) {
			t.Error("it does not know its layout")
		}
		if _, err := p.Publish(t.Context(), urn, nil, publisher.WithID("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := p.PublishBatch(t.Context(), []publisher.Message{{URN: urn}}); err != nil {
			t.Fatal(err)
		}
		all, headers := a.stored(t)
		for i := range all {
			if all[i].TraceID == "" || headers[i] != nil {
				t.Errorf("%v: stored %+v with %v", layout, all[i], headers[i])
			}
		}
		if all[0].TraceID == all[1].TraceID {
			t.Error("two messages have one trace_id")
		}
	}
	a := queue(t, publisher.Legacy)
	p := tracing.NewPublisher(a.plain, tracing.Config{TracerProvider: noop.NewTracerProvider()})
	headers := map[string]string{"traceparent": traceparent, "tracestate": "a=1"}
	if _, err := p.PublishWithHeaders(t.Context(), headers, urn, nil); err != nil {
		t.Fatal(err)
	}
	if _, got := a.stored(t); cmp.Diff(headers, got[0]) != "" {
		t.Errorf("stored %v", got[0])
	}
}

// A trace that is not sampled goes on as one that is not.
func TestUnsampled(t *testing.T) {
	t.Parallel()
	spans, cfg := kept(t, sdk.WithSampler(sdk.NeverSample()))
	a := queue(t, publisher.Legacy)
	if _, err := tracing.NewPublisher(a.plain, cfg).Publish(t.Context(), urn, nil); err != nil {
		t.Fatal(err)
	}
	_, headers := a.stored(t)
	if text := headers[0]["traceparent"]; len(text) != 55 || text[53:] != "00" {
		t.Errorf("traceparent %q", text)
	}
	if err := handle(cfg, message(func(d *delivery.Delivery) { d.Headers = headers[0] }), ack); err != nil {
		t.Error(err)
	}
	if n := len(spans.GetSpans()); n != 0 {
		t.Errorf("%d spans", n)
	}
}
