package tracing

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/babelpool/babelpool/publisher"
)

// PublishBatch is that of the Sender. Each message has a span of its own, which lasts as long as the batch, and in the legacy
// layout a frame with traceparent. The messages given are not changed.
func (p *Publisher) PublishBatch(ctx context.Context, messages []publisher.Message) ([]publisher.Result, error) {
	traced := slices.Clone(messages)
	spans := make([]*message, len(traced))
	for i := range traced {
		m := &traced[i]
		spans[i] = p.begin(ctx, m.URN, m.Headers, m.TraceID)
		m.TraceID = spans[i].traceID
		if p.next.CarriesHeaders() {
			m.Headers = spans[i].inject(m.Headers)
		}
	}
	var results []publisher.Result
	returned := false
	defer func() {
		if returned {
			for i, m := range spans {
				m.stored(results[i].ID)
				end(m.span, results[i].Err)
			}
			return
		}
		v := recover()
		for _, m := range spans {
			end(m.span, crash(v), trace.WithStackTrace(v != nil))
		}
		if v != nil {
			panic(v)
		}
	}()
	results, err := p.next.PublishBatch(ctx, traced)
	returned = true
	return results, err
}
