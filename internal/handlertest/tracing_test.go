package handlertest

import (
	"context"
	"errors"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/shard"
	"github.com/babelpool/babelpool/tracing"
)

// A shard's publisher can be traced as any other.
var _ tracing.Sender = (*shard.Publisher)(nil)

const (
	mails   = "mails"
	mailURN = "urn:babel:mails:wanted"
)

// traced is where a test's spans go.
func traced(t *testing.T) (*tracetest.InMemoryExporter, tracing.Config) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	t.Cleanup(func() {
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return spans, tracing.Config{TracerProvider: provider}
}

// named are the spans of a name in the order in which they ended.
func named(spans *tracetest.InMemoryExporter, name string) []tracetest.SpanStub {
	var found []tracetest.SpanStub
	for _, s := range spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// one is the only span of a name.
func (r *rig) one(spans *tracetest.InMemoryExporter, name string) tracetest.SpanStub {
	r.t.Helper()
	found := named(spans, name)
	if len(found) != 1 {
		r.t.Fatalf("%d spans %q among %v", len(found), name, spans.GetSpans())
	}
	return found[0]
}

// conversation is a span's trace_id of its message.
func conversation(s tracetest.SpanStub) string {
	for _, a := range s.Attributes {
		if a.Key == "messaging.message.conversation_id" {
			return a.Value.AsString()
		}
	}
	return ""
}

// TestTraceThroughTwoQueues follows a trace from a request through a queue and a handler to what that publishes, and on to
// the handler of that. In the legacy layout each span is the child of the one before; in the zset layout, without headers,
// a handler's parent is the remote span that stands for its producer. In both it is one trace, and one trace_id.
func TestTraceThroughTwoQueues(t *testing.T) {
	each(t, func(r *rig) {
		spans, cfg := traced(r.t)
		second, err := publisher.New(publisher.Config{Client: r.client, Queue: mails, Layout: r.layout, KeyPrefix: r.prefix})
		if err != nil {
			r.t.Fatal(err)
		}
		ordersOut, mailsOut := tracing.NewPublisher(r.publish, cfg), tracing.NewPublisher(second, cfg)

		mux := router.NewMux()
		mux.Use(tracing.Middleware(cfg))
		seen := make(chan delivery.Delivery, 2)
		mux.HandleFunc(urn, func(ctx context.Context, d *delivery.Delivery) error {
			seen <- *d
			_, err := mailsOut.Publish(ctx, mailURN, nil)
			return err
		})
		mux.HandleFunc(mailURN, func(_ context.Context, d *delivery.Delivery) error {
			seen <- *d
			return nil
		})
		pc := r.config(mux)
		pc.Queues = append(pc.Queues, pool.Queue{Name: mails})
		p := r.start(pc)

		ctx, request := cfg.TracerProvider.Tracer("test").Start(r.t.Context(), "request")
		if _, err := ordersOut.Publish(ctx, urn, map[string]int{"order_id": 1042}); err != nil {
			r.t.Fatal(err)
		}
		request.End()
		order, mail := <-seen, <-seen
		p.await("both are acked", func(pool.QueueStats) bool {
			all := p.Stats().Queues
			return all[0].Acked+all[1].Acked == 2
		})

		chain := []tracetest.SpanStub{
			r.one(spans, "request"), r.one(spans, "publish "+urn), r.one(spans, "process "+urn),
			r.one(spans, "publish "+mailURN), r.one(spans, "process "+mailURN),
		}
		for i, span := range chain {
			if i == 0 {
				continue
			}
			if span.SpanContext.TraceID() != request.SpanContext().TraceID() {
				r.t.Errorf("%s is in another trace", span.Name)
			}
			child, crosses := span.Parent.SpanID() == chain[i-1].SpanContext.SpanID(), span.SpanKind == trace.SpanKindConsumer
			if want := !crosses || r.layout == pool.Legacy; child != want || span.Parent.IsRemote() != crosses {
				r.t.Errorf("%s: child of %s %t, want %t; remote %t", span.Name, chain[i-1].Name, child, want, span.Parent.IsRemote())
			}
			if conversation(span) != order.TraceID {
				r.t.Errorf("%s: conversation %q, want %q", span.Name, conversation(span), order.TraceID)
			}
		}
		if mail.TraceID != order.TraceID || (order.Headers["traceparent"] != "") != (r.layout == pool.Legacy) {
			r.t.Errorf("trace_id %q and %q, headers %v", order.TraceID, mail.TraceID, order.Headers)
		}
		if lines := r.logs.Lines(); len(lines) > 0 && len(r.logs.With("headers")) > 0 {
			r.t.Errorf("logged %q", lines)
		}
	})
}

// TestTraceOfARetry: the runs of a message are siblings; what failed says why, and a redelivery has a link to where the
// message came from. A panic is a failed span and, to the pool, a panic.
func TestTraceOfARetry(t *testing.T) {
	each(t, func(r *rig) {
		spans, cfg := traced(r.t)
		mux := router.NewMux()
		mux.Use(tracing.Middleware(cfg))
		mux.HandleFunc(urn, func(_ context.Context, d *delivery.Delivery) error {
			switch d.Number {
			case 1:
				return errors.New("no stock")
			case 2:
				panic("no shop")
			}
			return nil
		})
		pc := r.config(mux)
		pc.FailureDelay = new(float64)
		p := r.start(pc)
		if _, err := tracing.NewPublisher(r.publish, cfg).Publish(r.t.Context(), urn, nil); err != nil {
			r.t.Fatal(err)
		}
		p.await("it is acked", func(s pool.QueueStats) bool { return s.Acked == 1 })
		if s := p.stats(); s.Failed != 2 || s.Panics != 1 {
			r.t.Errorf("%+v", s)
		}
		runs := named(spans, "process "+urn)
		if len(runs) != 3 {
			r.t.Fatalf("%d runs", len(runs))
		}
		for i, want := range []string{"no stock", "panic: no shop", ""} {
			run := runs[i]
			if run.Status.Description != want || !run.Parent.Equal(runs[0].Parent) {
				r.t.Errorf("run %d: %q, parent %v", i+1, run.Status.Description, run.Parent)
			}
			if linked := len(run.Links) == 1 && run.Links[0].SpanContext.Equal(run.Parent); linked != (i > 0) {
				r.t.Errorf("run %d: links %v", i+1, run.Links)
			}
		}
	})
}
