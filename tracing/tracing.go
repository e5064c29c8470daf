package tracing

import (
	"errors"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
)

// scope names this package to exporters.
const scope = "github.com/babelpool/babelpool/tracing"

// The attributes of the contract.
const (
	attrSystem       = attribute.Key("messaging.system")
	attrOperation    = attribute.Key("messaging.operation")
	attrDestination  = attribute.Key("messaging.destination.name")
	attrMessage      = attribute.Key("messaging.message.id")
	attrConversation = attribute.Key("messaging.message.conversation_id")
	attrAttempts     = attribute.Key("messaging.babelqueue.attempts")
	attrPostponed    = attribute.Key("messaging.babelqueue.postponed") // for how long; our own
	attrDelivery     = attribute.Key("messaging.babelqueue.delivery")  // of links; our own
)

const system = "babelqueue"

// Config says where spans go. The zero value is ready.
type Config struct {
	// TracerProvider makes the spans. Defaults to the global one, otel.GetTracerProvider.
	TracerProvider trace.TracerProvider
}

func (c Config) tracer() trace.Tracer {
	p := c.TracerProvider
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return p.Tracer(scope)
}

// run calls f and ends the span with what became of it. A panic and runtime.Goexit go on as they were.
func run(span trace.Span, f func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			end(span, err)
			return
		}
		v := recover()
		end(span, crash(v), trace.WithStackTrace(v != nil))
		if v != nil {
			panic(v)
		}
	}()
	err = f()
	returned = true
	return err
}

// crash is the error of a call that did not return: what it panicked with, or nil for runtime.Goexit.
func crash(v any) error {
	if v == nil {
		return router.ErrExited
	}
	return &router.PanicError{Value: v}
}

// end ends a span, with the error if there is one: the event has the error that a dead letter would record (D2), the status
// all that was said.
func end(span trace.Span, err error, opts ...trace.EventOption) {
	defer span.End() // also when an error's own method panics, which End then records
	if put := (*delivery.PostponeError)(nil); errors.As(err, &put) {
		span.SetAttributes(attrPostponed.String(put.Delay.String()))
		return
	}
	if err != nil && span.IsRecording() {
		span.RecordError(delivery.Reason(err), opts...)
		span.SetStatus(codes.Error, err.Error())
	}
}
