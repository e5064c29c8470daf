package router_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/router"
)

// OrderCreated is the data of a message.
type OrderCreated struct {
	OrderID int64 `json:"order_id"`
	Lines   []struct {
		SKU   string `json:"sku"`
		Price int64  `json:"price"`
	} `json:"lines"`
}

// Validate refuses what no handler can work with.
func (o OrderCreated) Validate() error {
	if o.OrderID <= 0 {
		return &router.PayloadError{Path: "$.order_id", Expected: "must be above 0"}
	}
	return nil
}

func ExampleTyped() {
	mux := router.NewMux()
	mux.Register("urn:babel:orders:created", router.Typed(
		func(_ context.Context, _ *delivery.Delivery, order OrderCreated) error {
			fmt.Println("order", order.OrderID)
			return nil
		}))

	for _, data := range []string{
		`{"order_id":1042,"lines":[]}`,
		`{"order_id":1042,"lines":[{"sku":"a","price":5},{"sku":"b","price":"7"}]}`,
		`{"lines":[]}`,
	} {
		// A pool calls the mux with what it has consumed.
		d := &delivery.Delivery{Envelope: envelope.Envelope{URN: "urn:babel:orders:created", Data: data}}
		if err := mux.Handle(context.Background(), d); err != nil {
			var final *delivery.DeadLetterError
			fmt.Println(errors.As(err, &final), delivery.Reason(err))
		}
	}
	// Output:
	// order 1042
	// true router: bad payload: $.lines[1].price: expected an integer (int64), got string
	// true router: bad payload: $.order_id: must be above 0
}

func ExampleMux_Use() {
	mux := router.NewMux()
	mux.Use(
		router.Logging(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))),
		router.Recovery(), // what stands before it sees a panic as an error
		router.Timeouts(map[string]time.Duration{"urn:babel:orders:created": 5 * time.Second}),
	)
	mux.HandleFunc("urn:babel:orders:created", func(context.Context, *delivery.Delivery) error { panic("no stock") })

	d := &delivery.Delivery{Envelope: envelope.Envelope{URN: "urn:babel:orders:created"}, Queue: "orders", Number: 1}
	d.Meta.ID = "f1e2"
	_ = mux.Handle(context.Background(), d)
	// Output:
	// level=WARN msg=handled id=f1e2 urn=urn:babel:orders:created queue=orders delivery=1 outcome=panicked error="panic: no stock"
}

// withoutTimes leaves out what differs from run to run.
func withoutTimes(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "duration" {
		return slog.Attr{}
	}
	return a
}
