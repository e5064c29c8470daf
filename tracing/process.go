package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
)

// Middleware makes a span "process <urn>" around each run of a handler, whose context carries it: what the handler publishes
// with a Publisher of this package goes on with the trace. A handler's error is recorded, and its span then has the status
// Error; so has one that panicked or called runtime.Goexit. A message that
// its handler puts off (delivery.Postpone) has not failed: its span has messaging.babelqueue.postponed. Put it outside of other middleware, so that its span sees the
// whole time and the last word.
func Middleware(cfg Config) router.Middleware {
	tracer := cfg.tracer()
	return func(next delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
			ctx, span := process(ctx, tracer, d)
			return run(span, func() error { return next.Handle(ctx, d) })
		})
	}
}

// process starts the span of a delivery.
func process(ctx context.Context, tracer trace.Tracer, d *delivery.Delivery) (context.Context, trace.Span) {
	origin := carried(d.Headers)
	if !origin.IsValid() {
		origin = derived(d.TraceID)
	}
	opts := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		// Clones, because a span lives until it is exported, and these are pieces of the body.
		trace.WithAttributes(
			attrSystem.String(system),
			attrOperation.String("process"),
			attrDestination.String(strings.Clone(d.Meta.Queue)),
			attrMessage.String(strings.Clone(d.Meta.ID)),
			attrConversation.String(strings.Clone(d.TraceID)),
			attrAttempts.Int64(d.Attempts),
		),
	}
	if d.Number > 1 {
		opts = append(opts, trace.WithLinks(trace.Link{
			SpanContext: origin, Attributes: []attribute.KeyValue{attrDelivery.Int64(d.Number)},
		}))
	}
	ctx = trace.ContextWithRemoteSpanContext(ctx, origin)
	return tracer.Start(withMessage(ctx, d.TraceID), "process "+d.URN, opts...)
}
