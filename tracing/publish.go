package tracing

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/publisher"
)

// Sender is what a Publisher publishes with: a *publisher.Publisher, or a *shard.Publisher.
type Sender interface {
	CarriesHeaders() bool
	Publish(ctx context.Context, urn string, data any, opts ...publisher.Option) (string, error)
	PublishWithHeaders(
		ctx context.Context, headers map[string]string, urn string, data any, opts ...publisher.Option,
	) (string, error)
	PublishDelayed(
		ctx context.Context, delay time.Duration, urn string, data any, opts ...publisher.Option,
	) (string, error)
	PublishBatch(ctx context.Context, messages []publisher.Message) ([]publisher.Result, error)
	PublishIn(
		ctx context.Context, pipe redis.Pipeliner, urn string, data any, opts ...publisher.Option,
	) (string, error)
	PublishEnvelope(ctx context.Context, e envelope.Envelope) error
}

// Publisher publishes as its Sender does, in a span "publish <urn>" for each message. Its methods are the Sender's; what is
// said there, of errors above all, holds here. It is safe for concurrent use.
type Publisher struct {
	next   Sender
	tracer trace.Tracer
}

// NewPublisher makes a Publisher.
func NewPublisher(next Sender, cfg Config) *Publisher { return &Publisher{next, cfg.tracer()} }

// CarriesHeaders reports whether messages carry their span in a header: in the legacy layout (F4).
func (p *Publisher) CarriesHeaders() bool { return p.next.CarriesHeaders() }

// Publish is that of the Sender. In the legacy layout the message is stored in a frame, with traceparent (F1).
func (p *Publisher) Publish(ctx context.Context, urn string, data any, opts ...publisher.Option) (string, error) {
	return p.PublishWithHeaders(ctx, nil, urn, data, opts...)
}

// PublishWithHeaders is that of the Sender. In the legacy layout traceparent and tracestate are set, in a copy. Those that
// are given are the parent where the context has no span.
func (p *Publisher) PublishWithHeaders(
	ctx context.Context, headers map[string]string, urn string, data any, opts ...publisher.Option,
) (string, error) {
	m := p.start(ctx, urn, headers, opts)
	return m.run(func() (string, error) {
		if p.next.CarriesHeaders() {
			headers = m.inject(headers)
		}
		if len(headers) == 0 {
			return p.next.Publish(m.ctx, urn, data, m.opts...)
		}
		return p.next.PublishWithHeaders(m.ctx, headers, urn, data, m.opts...)
	})
}

// PublishDelayed is that of the Sender. The span is the publish's: it does not last until the message is due.
func (p *Publisher) PublishDelayed(
	ctx context.Context, delay time.Duration, urn string, data any, opts ...publisher.Option,
) (string, error) {
	m := p.start(ctx, urn, nil, opts)
	return m.run(func() (string, error) { return p.next.PublishDelayed(m.ctx, delay, urn, data, m.opts...) })
}

// PublishIn is that of the Sender. The span is over before the caller's Exec, and tells nothing of it. The message has no
// header: its trace goes on by its trace_id.
func (p *Publisher) PublishIn(
	ctx context.Context, pipe redis.Pipeliner, urn string, data any, opts ...publisher.Option,
) (string, error) {
	m := p.start(ctx, urn, nil, opts)
	return m.run(func() (string, error) { return p.next.PublishIn(m.ctx, pipe, urn, data, m.opts...) })
}

// PublishEnvelope is that of the Sender. The envelope stays as it is, and the message has no header: its trace goes on by
// its trace_id.
func (p *Publisher) PublishEnvelope(ctx context.Context, e envelope.Envelope) error {
	m := p.start(ctx, e.URN, nil, []publisher.Option{publisher.WithTraceID(e.TraceID)})
	m.span.SetAttributes(attrAttempts.Int64(e.Attempts))
	_, err := m.run(func() (string, error) { return e.Meta.ID, p.next.PublishEnvelope(m.ctx, e) })
	return err
}

// message is one publish under way.
type message struct {
	ctx     context.Context //nolint:containedctx // the call's, with the span in it
	span    trace.Span
	traceID string
	opts    []publisher.Option // the caller's, behind the trace_id that it may not have set
}

// start starts the span of a message that is given with options.
func (p *Publisher) start(ctx context.Context, urn string, headers map[string]string, opts []publisher.Option) *message {
	var said envelope.Envelope // by the options
	for _, opt := range opts {
		opt(&said)
	}
	m := p.begin(ctx, urn, headers, said.TraceID)
	m.opts = append([]publisher.Option{publisher.WithTraceID(m.traceID)}, opts...)
	return m
}

// begin starts the span of a message and decides on its trace_id; "" leaves it to the Sender.
func (p *Publisher) begin(ctx context.Context, urn string, headers map[string]string, traceID string) *message {
	if strings.TrimSpace(traceID) == "" {
		traceID = messageTraceID(ctx)
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		origin := carried(headers)
		if !origin.IsValid() && traceID != "" {
			origin = derived(traceID)
		}
		if origin.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, origin)
		}
	}
	urn = strings.TrimSpace(urn)
	ctx, span := p.tracer.Start(ctx, "publish "+urn, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attrSystem.String(system),
		attrOperation.String("publish"),
		attrDestination.String(urn),
		attrAttempts.Int64(0),
	))
	if id := span.SpanContext().TraceID(); traceID == "" && id.IsValid() {
		traceID = uuidOf(id)
	}
	span.SetAttributes(attrConversation.String(traceID))
	return &message{ctx: ctx, span: span, traceID: traceID}
}

// inject is the headers with those that name the span.
func (m *message) inject(headers map[string]string) map[string]string {
	all := make(map[string]string, len(headers)+2)
	for key, value := range headers {
		all[key] = value
	}
	if m.span.SpanContext().IsValid() {
		delete(all, "tracestate") // of another parent
	}
	w3c.Inject(m.ctx, propagation.MapCarrier(all))
	return all
}

// run publishes and ends the span.
func (m *message) run(publish func() (string, error)) (id string, err error) {
	err = run(m.span, func() error {
		id, err = publish()
		m.stored(id)
		return err
	})
	return id, err
}

// stored notes the message's meta.id, where it came to have one.
func (m *message) stored(id string) {
	if id != "" {
		m.span.SetAttributes(attrMessage.String(id))
	}
}
