package routertest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/routertest"
)

// ship is the handler under test.
func ship(_ context.Context, _ *delivery.Delivery, order struct {
	OrderID int64 `json:"order_id"`
}) error {
	if order.OrderID == 7 {
		return errors.New("no stock")
	}
	return nil
}

func Example() {
	mux := router.NewMux()
	mux.Register("urn:babel:orders:created", router.Typed(ship))

	kit := routertest.New(routertest.Config{
		Handler: mux,
		Layout:  routertest.Zset,
		// A test of a pool's own config takes its Policy().
		Policy: router.Policy{MaxAttempts: 3, Delay: router.Delay{Backoff: router.Backoff{Base: 10 * time.Second, Multiplier: 2}}},
	})
	order := func(id any) routertest.Message {
		return routertest.Message{URN: "urn:babel:orders:created", Data: map[string]any{"order_id": id}}
	}
	ctx := context.Background() // a test has t.Context()

	fmt.Println(kit.Run(ctx, order(1042)))
	fmt.Println(kit.Run(ctx, order("x")))
	for _, out := range kit.RunToEnd(ctx, order(7), 10) {
		fmt.Println(out)
	}
	// Output:
	// acked
	// dead-lettered as failed: dead-letter: router: bad payload: $.order_id: expected an integer (int64), got string
	// released for 10s, charged: no stock
	// released for 20s, charged: no stock
	// dead-lettered as failed: no stock
}

// A handler can also be called by itself.
func ExampleDelivery() {
	h := router.Typed(ship)
	fmt.Println(h.Handle(context.Background(), routertest.Delivery(routertest.Message{
		URN: "urn:babel:orders:created", Data: map[string]any{"order_id": 7}, Attempts: 2,
	})))
	// Output:
	// no stock
}
