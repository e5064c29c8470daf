// Tracing follows an order through two queues: published, handled by a worker that publishes a mail, which another worker
// handles. All of it is one trace. It prints each span with its parent, and ends.
//
//	BQ_REDIS_URL=redis://localhost:6379 go run ./examples/tracing
//
// A program of yours has an OTLP exporter in place of the printer.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/tracing"
)

func main() {
	if err := run(os.Getenv("BQ_REDIS_URL")); err != nil {
		log.Fatal(err)
	}
}

func run(url string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	// From here on spans go to the printer, those of packages that know nothing of it too.
	provider := sdk.NewTracerProvider(sdk.WithBatcher(printer{}))
	otel.SetTracerProvider(provider)
	defer func() {
		if last := provider.Shutdown(context.WithoutCancel(ctx)); err == nil { // sends what is left
			err = last
		}
	}()

	rdb, err := pool.OpenRedis(url)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	orders, err := traced(rdb, "orders-traced")
	if err != nil {
		return err
	}
	mails, err := traced(rdb, "mails-traced")
	if err != nil {
		return err
	}

	mux := router.NewMux()
	mux.Use(tracing.Middleware(tracing.Config{})) // outermost: its span sees the whole time
	mux.HandleFunc("urn:babel:orders:created", func(ctx context.Context, _ *delivery.Delivery) error {
		_, err := mails.Publish(ctx, "urn:babel:mails:wanted", map[string]any{"order_id": 1042}) // ctx has the trace
		return err
	})
	mux.HandleFunc("urn:babel:mails:wanted", func(context.Context, *delivery.Delivery) error {
		fmt.Println("mail sent")
		stop() // enough for an example; the pool drains
		return nil
	})

	if _, err := orders.Publish(ctx, "urn:babel:orders:created", map[string]any{"order_id": 1042}); err != nil {
		return err
	}
	return pool.New(pool.Config{
		Client:  rdb,
		Queues:  []pool.Queue{{Name: "orders-traced"}, {Name: "mails-traced"}},
		Handler: mux,
	}).Run(ctx)
}

// traced makes a publisher whose messages carry their trace.
func traced(rdb redis.UniversalClient, queue string) (*tracing.Publisher, error) {
	plain, err := publisher.New(publisher.Config{Client: rdb, Queue: queue})
	if err != nil {
		return nil, err
	}
	return tracing.NewPublisher(plain, tracing.Config{}), nil
}

// printer is an exporter that prints spans.
type printer struct{}

// ExportSpans prints them in the order of their ends.
func (printer) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	for _, span := range spans {
		fmt.Printf("span %s of trace %s, id %s, parent %s\n",
			span.Name(), span.SpanContext().TraceID(), span.SpanContext().SpanID(), span.Parent().SpanID())
	}
	return nil
}

// Shutdown does nothing.
func (printer) Shutdown(context.Context) error { return nil }
