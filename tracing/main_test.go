package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/tracing"
)

func TestMain(m *testing.M) { testredis.Main(m) }

const (
	urn     = "urn:babel:orders:created"
	traceID = "7b3f9c0a-5d2e-4f6b-8a1c-0123456789ab"

	// What SDKs derive from traceID.
	derivedTrace = "7b3f9c0a5d2e4f6b8a1c0123456789ab"
	derivedSpan  = "ef9accd3ab456db3"

	traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

var errBoom = errors.New("boom")

// kept is an exporter, and the config that sends spans to it.
func kept(t *testing.T, opts ...sdk.TracerProviderOption) (*tracetest.InMemoryExporter, tracing.Config) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(append(opts, sdk.WithSyncer(spans))...)
	t.Cleanup(func() {
		if err := provider.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return spans, tracing.Config{TracerProvider: provider}
}

// only is the one span that was ended.
func only(t *testing.T, spans *tracetest.InMemoryExporter) tracetest.SpanStub {
	t.Helper()
	all := spans.GetSpans()
	if len(all) != 1 {
		t.Fatalf("%d spans, want one", len(all))
	}
	return all[0]
}

// attributes are a span's or link's as plain values.
func attributes(all []attribute.KeyValue) map[string]any {
	got := map[string]any{}
	for _, a := range all {
		got[string(a.Key)] = a.Value.AsInterface()
	}
	return got
}

// message is a delivery of a message.
func message(change func(d *delivery.Delivery)) *delivery.Delivery {
	d := &delivery.Delivery{
		Envelope: envelope.Envelope{
			URN: urn, TraceID: traceID, Attempts: 2, Meta: envelope.Meta{ID: "f1e2", Queue: "published-to"},
		},
		Queue: "consumed-from", Number: 1,
	}
	if change != nil {
		change(d)
	}
	return d
}

// handle runs a handler behind the middleware.
func handle(cfg tracing.Config, d *delivery.Delivery, f delivery.HandlerFunc) error {
	return tracing.Middleware(cfg)(f).Handle(context.Background(), d)
}

// ack is a handler.
func ack(context.Context, *delivery.Delivery) error { return nil }

// at is a queue on a server of its own, and what its publisher logs.
type at struct {
	rdb   *redis.Client
	logs  *testlog.Recorder
	plain *publisher.Publisher
	key   string // of the ready list
}

func queue(t *testing.T, layout publisher.Layout) *at {
	t.Helper()
	a := &at{rdb: testredis.Client(t, testredis.Mini(t).Addr()), logs: &testlog.Recorder{}, key: "orders"}
	if layout == publisher.Zset {
		a.key = "queues:orders"
	}
	var err error
	a.plain, err = publisher.New(publisher.Config{Client: a.rdb, Queue: "orders", Layout: layout, Logger: slog.New(a.logs)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// stored are the messages in the queue, and their headers.
func (a *at) stored(t *testing.T) (all []envelope.Envelope, headers []map[string]string) {
	t.Helper()
	texts, err := a.rdb.LRange(t.Context(), a.key, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		frame, _ := envelope.Unframe(text)
		e, err := envelope.Decode(frame.Body)
		if err != nil {
			t.Fatal(err)
		}
		all, headers = append(all, e), append(headers, frame.Headers)
	}
	return all, headers
}

// traceparentOf is the header that names a span.
func traceparentOf(sc trace.SpanContext) string {
	flags := "00"
	if sc.IsSampled() {
		flags = "01"
	}
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + flags
}
