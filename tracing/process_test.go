package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/tracing"
)

func TestProcessSpan(t *testing.T) {
	t.Parallel()
	spans, cfg := kept(t)
	var inside trace.SpanContext
	if err := handle(cfg, message(nil), func(ctx context.Context, _ *delivery.Delivery) error {
		inside = trace.SpanContextFromContext(ctx)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	span := only(t, spans)
	if span.Name != "process "+urn || span.SpanKind != trace.SpanKindConsumer || !span.SpanContext.Equal(inside) {
		t.Errorf("%s of kind %s; the handler has %v", span.Name, span.SpanKind, inside)
	}
	want := map[string]any{
		"messaging.system": "babelqueue", "messaging.operation": "process", "messaging.destination.name": "published-to",
		"messaging.message.id": "f1e2", "messaging.message.conversation_id": traceID, "messaging.babelqueue.attempts": int64(2),
	}
	if diff := cmp.Diff(want, attributes(span.Attributes)); diff != "" {
		t.Error(diff)
	}
	if span.Status.Code != codes.Unset || len(span.Events)+len(span.Links) > 0 || span.EndTime.IsZero() {
		t.Errorf("a first delivery that ended well: %+v", span)
	}
	if span.InstrumentationScope.Name != "github.com/babelpool/babelpool/tracing" {
		t.Errorf("scope %q", span.InstrumentationScope.Name)
	}
}

// The parent is the span that traceparent names, and where there is no valid one the one that all SDKs derive from trace_id.
func TestParent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		headers     map[string]string
		traceID     string
		trace, span string // of the parent
		state       string
	}{
		"traceparent": {
			map[string]string{"traceparent": traceparent, "tracestate": "a=1"}, traceID,
			"0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "a=1",
		},
		"no header":        {nil, traceID, derivedTrace, derivedSpan, ""},
		"another header":   {map[string]string{"tracestate": "a=1"}, traceID, derivedTrace, derivedSpan, ""},
		"a wrong header":   {map[string]string{"traceparent": "00-1-2-01"}, traceID, derivedTrace, derivedSpan, ""},
		"a zero header":    {map[string]string{"traceparent": strings.Replace(traceparent, "b7ad6b7169203331", "0000000000000000", 1)}, traceID, derivedTrace, derivedSpan, ""},
		"without dashes":   {nil, strings.ToUpper(derivedTrace), derivedTrace, "a338b2ca0b90f9bd", ""},
		"zeros":            {nil, "00000000-0000-0000-0000-000000000000", "12b9377cbe7e5c94e8a70d9d23929523", "e47eabb353476bde", ""},
		"no UUID":          {nil, "order 7", "0fc89f8ae19394b48debd6353bb9ad33", "0a1a47d8ebd48f37", ""},
		"no digits":        {nil, "zzzzzzzz" + traceID[8:], "df7f0049eec900be2b4b989389d995ed", "bf5f305e2b31dd55", ""},
		"a blank before":   {nil, " " + traceID, "1d0fa81f5506b45a4799085b08bab0f6", "c040e03b206498fb", ""},
		"an empty id even": {nil, "", "e3b0c44298fc1c149afbf4c8996fb924", "e22ee649de3f1d55", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spans, cfg := kept(t)
			d := message(func(d *delivery.Delivery) { d.Headers, d.TraceID = tc.headers, tc.traceID })
			if err := handle(cfg, d, ack); err != nil {
				t.Fatal(err)
			}
			span := only(t, spans)
			parent := span.Parent
			if parent.TraceID().String() != tc.trace || parent.SpanID().String() != tc.span || !parent.IsRemote() ||
				!parent.IsSampled() || parent.TraceState().String() != tc.state {
				t.Errorf("the parent is %+v", parent)
			}
			if span.SpanContext.TraceID() != parent.TraceID() || span.SpanContext.SpanID() == parent.SpanID() {
				t.Errorf("the span is %+v", span.SpanContext)
			}
		})
	}
}

// The span that the middleware finds in its context is not the parent: the message says where it comes from.
func TestParentIsTheMessages(t *testing.T) {
	t.Parallel()
	spans, cfg := kept(t)
	ctx, outer := cfg.TracerProvider.Tracer("test").Start(t.Context(), "outer")
	if err := tracing.Middleware(cfg)(delivery.HandlerFunc(ack)).Handle(ctx, message(nil)); err != nil {
		t.Fatal(err)
	}
	if parent := only(t, spans).Parent; parent.SpanID().String() != derivedSpan {
		t.Errorf("the parent is %+v", parent)
	}
	outer.End()
}

func TestRedeliveryLinks(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string]map[string]string{"derived": nil, "traceparent": {"traceparent": traceparent}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spans, cfg := kept(t)
			for n := range int64(3) {
				d := message(func(d *delivery.Delivery) { d.Headers, d.Number = headers, n+1 })
				if err := handle(cfg, d, ack); err != nil {
					t.Fatal(err)
				}
			}
			all := spans.GetSpans()
			if len(all[0].Links) > 0 {
				t.Error("the first delivery has a link")
			}
			for i, span := range all[1:] {
				if len(span.Links) != 1 {
					t.Fatalf("delivery %d has %d links", i+2, len(span.Links))
				}
				link := span.Links[0]
				if !link.SpanContext.Equal(all[0].Parent) || !link.SpanContext.Equal(span.Parent) {
					t.Errorf("delivery %d links to %+v", i+2, link.SpanContext)
				}
				if diff := cmp.Diff(map[string]any{"messaging.babelqueue.delivery": int64(i + 2)}, attributes(link.Attributes)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// angry is an error whose text cannot be had.
type angry struct{ text *string }

func (a *angry) Error() string { return *a.text }

// However a handler ends, its span ends with it, and says so; and what the pool sees is what it would see without.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                  string
		handler               delivery.HandlerFunc
		kind, message, status string
		stack                 bool
		ends                  string
	}{
		{"error", func(context.Context, *delivery.Delivery) error { return errBoom }, "*errors.errorString", "boom", "boom", false, "error: boom"},
		{
			"verdict", func(context.Context, *delivery.Delivery) error { return delivery.DeadLetter(errBoom) },
			"*errors.errorString", "boom", "dead-letter: boom", false, "error: dead-letter: boom",
		},
		{
			"panic", func(context.Context, *delivery.Delivery) error { panic(errBoom) },
			"*router.PanicError", "panic: boom", "panic: boom", true, "panic: boom",
		},
		{
			"panic with nil", func(context.Context, *delivery.Delivery) error { panic(nil) },
			"*router.PanicError", "panic: panic called with nil argument",
			"panic: panic called with nil argument", true,
			"panic: panic called with nil argument",
		},
		{
			"goexit", func(context.Context, *delivery.Delivery) error { runtime.Goexit(); return nil },
			"*errors.errorString", router.ErrExited.Error(), router.ErrExited.Error(), false, "goexit",
		},
		{
			"an error that panics", func(context.Context, *delivery.Delivery) error { return &angry{} },
			"runtime.errorString", "runtime error: invalid memory address or nil pointer dereference", "", false,
			"panic: runtime error: invalid memory address or nil pointer dereference",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			spans, cfg := kept(t)
			if got := ends(func() error { return handle(cfg, message(nil), tc.handler) }); got != tc.ends {
				t.Errorf("ended with %q, want %q", got, tc.ends)
			}
			checkFailure(t, only(t, spans), tc.kind, tc.message, tc.status, tc.stack)
		})
	}
}

// checkFailure checks how a span tells of a failure. A status of "" is none.
func checkFailure(t *testing.T, span tracetest.SpanStub, kind, message, status string, stack bool) {
	t.Helper()
	if span.EndTime.IsZero() {
		t.Error("the span has not ended")
	}
	if status != "" && span.Status != (sdk.Status{Code: codes.Error, Description: status}) {
		t.Errorf("status %+v, want %q", span.Status, status)
	}
	if len(span.Events) != 1 || span.Events[0].Name != "exception" {
		t.Fatalf("events %+v", span.Events)
	}
	got := attributes(span.Events[0].Attributes)
	if got["exception.type"] != kind || got["exception.message"] != message {
		t.Errorf("recorded %v", got)
	}
	if trail, _ := got["exception.stacktrace"].(string); stack != strings.Contains(trail, "process_test.go") {
		t.Errorf("stack %q", trail)
	}
}

// ends tells how a call ended.
func ends(f func() error) string {
	how := make(chan string, 1)
	go func() {
		end := "goexit"
		defer func() {
			if v := recover(); v != nil {
				end = fmt.Sprint("panic: ", v)
			}
			how <- end
		}()
		if err := f(); err != nil {
			end = "error: " + err.Error()
		} else {
			end = ""
		}
	}()
	return <-how
}

// The pool's log of a panic still says where it came from.
func TestPanicKeepsItsStack(t *testing.T) {
	t.Parallel()
	_, cfg := kept(t)
	h := router.Recovery()(tracing.Middleware(cfg)(delivery.HandlerFunc(deep)))
	var crash *router.PanicError
	if err := h.Handle(t.Context(), message(nil)); !errors.As(err, &crash) || !errors.Is(err, errBoom) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(string(crash.Stack), "tracing_test.deep(") {
		t.Errorf("stack %s", crash.Stack)
	}
}

//go:noinline
func deep(context.Context, *delivery.Delivery) error { panic(errBoom) }

// Without a provider nothing is recorded, and nothing else changes.
func TestProcessWithoutAProvider(t *testing.T) {
	t.Parallel()
	d := message(func(d *delivery.Delivery) { d.Headers = map[string]string{"traceparent": traceparent} })
	if err := handle(tracing.Config{}, d, func(ctx context.Context, same *delivery.Delivery) error {
		if same != d || traceparentOf(trace.SpanContextFromContext(ctx)) != traceparent {
			t.Error("another delivery, or no trace to go on with")
		}
		return errBoom
	}); !errors.Is(err, errBoom) {
		t.Errorf("got %v", err)
	}
}

// What a handler puts off has not failed: its span says for how long, and has neither an error nor a status.
func TestPostponed(t *testing.T) {
	t.Parallel()
	spans, cfg := kept(t)
	h := tracing.Middleware(cfg)(delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error {
		return fmt.Errorf("limit: %w", delivery.Postpone(3*time.Second, errBoom))
	}))
	if err := h.Handle(t.Context(), &delivery.Delivery{}); !errors.Is(err, errBoom) {
		t.Errorf("the verdict became %v", err)
	}
	span := only(t, spans)
	if got := attributes(span.Attributes)["messaging.babelqueue.postponed"]; got != "3s" || len(span.Events) != 0 || span.Status.Code != codes.Unset {
		t.Errorf("postponed %v, events %v, status %v", got, span.Events, span.Status)
	}
}
