package tracing_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/tracing"
)

// An order is published, and its handler publishes a mail. The mux goes into pool.Config as Handler.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	ctx := context.Background()

	spans := tracetest.NewInMemoryExporter()                 // a program has an OTLP exporter,
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans)) // with sdk.WithBatcher,
	defer func() { _ = provider.Shutdown(ctx) }()            // and otel.SetTracerProvider(provider) makes
	traces := tracing.Config{TracerProvider: provider}       // this the default
	plain, err := publisher.New(publisher.Config{Client: rdb, Queue: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	orders := tracing.NewPublisher(plain, traces)

	mux := router.NewMux()
	mux.Use(tracing.Middleware(traces))
	mux.HandleFunc("urn:babel:orders:created", func(ctx context.Context, _ *delivery.Delivery) error {
		_, err := orders.Publish(ctx, "urn:babel:mails:wanted", nil) // ctx has the trace
		return err
	})

	if _, err := orders.Publish(ctx, "urn:babel:orders:created", map[string]int{"order_id": 1042}); err != nil {
		log.Fatal(err)
	}
	if err := mux.Handle(ctx, receive(ctx, rdb)); err != nil {
		log.Fatal(err)
	}
	first := spans.GetSpans()[0].SpanContext.TraceID()
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name, span.SpanContext.TraceID() == first)
	}
	// Output:
	// publish urn:babel:orders:created true
	// publish urn:babel:mails:wanted true
	// process urn:babel:orders:created true
}

// receive does what a pool does with a message, but for its safety.
func receive(ctx context.Context, rdb *redis.Client) *delivery.Delivery {
	frame, _ := envelope.Unframe(rdb.LPop(ctx, "orders").Val())
	e, err := envelope.Decode(frame.Body)
	if err != nil {
		log.Fatal(err)
	}
	return &delivery.Delivery{Envelope: e, Headers: frame.Headers, Number: 1}
}
