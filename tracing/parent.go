package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// headerTraceparent is the header that names a parent; tracestate comes with it.
const headerTraceparent = "traceparent"

// w3c reads and writes the two headers. The program's own propagator may know others, which peers do not.
var w3c propagation.TraceContext

// carried is the span that headers name; not valid where they name none.
func carried(headers map[string]string) trace.SpanContext {
	if headers[headerTraceparent] == "" {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.MapCarrier(headers)))
}

// derived is the span that stands for the producer of a message whose headers name none. Every SDK derives the same.
func derived(traceID string) trace.SpanContext {
	sum := sha256.Sum256([]byte("babelqueue-span:" + traceID))
	span := trace.SpanID(sum[:8])
	if !span.IsValid() {
		span[7] = 1
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceOf(traceID), SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

// traceOf is the trace that a trace_id names: its 16 bytes, where it is a UUID, with or without dashes as peers take it,
// and not all zero; else the beginning of its SHA-256.
func traceOf(traceID string) (id trace.TraceID) {
	digits := strings.ReplaceAll(traceID, "-", "")
	if len(digits) == hex.EncodedLen(len(id)) {
		if _, err := hex.Decode(id[:], []byte(digits)); err == nil && id.IsValid() {
			return id
		}
	}
	sum := sha256.Sum256([]byte(traceID))
	return trace.TraceID(sum[:len(id)])
}

// uuidOf spells a trace as the trace_id that names it.
func uuidOf(id trace.TraceID) string {
	h := id.String()
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// messageKey is the context key of the trace_id of the message that is being handled.
type messageKey struct{}

func withMessage(ctx context.Context, traceID string) context.Context {
	return context.WithValue(ctx, messageKey{}, traceID)
}

// messageTraceID is the trace_id of the message whose handler runs under ctx; "" outside of handlers.
func messageTraceID(ctx context.Context) string {
	id, _ := ctx.Value(messageKey{}).(string)
	return id
}
