package bench

import (
	"context"
	"testing"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/router"
)

// BenchmarkDecode is the decoding of an envelope; envelope.BenchmarkDecode compares ways to do it.
func BenchmarkDecode(b *testing.B) {
	text := newBodies(b, bodyBytes).at(1)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := envelope.Decode(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDispatch is the way from a decoded envelope through the Mux to a handler that binds its data.
func BenchmarkDispatch(b *testing.B) {
	mux := router.NewMux()
	mux.HandleFunc(urn, func(_ context.Context, d *delivery.Delivery) error {
		var order struct {
			OrderID int64 `json:"order_id"`
		}
		return d.Bind(&order)
	})
	e, err := envelope.Decode(newBodies(b, bodyBytes).at(1))
	if err != nil {
		b.Fatal(err)
	}
	d := &delivery.Delivery{Envelope: e}
	b.ReportAllocs()
	for b.Loop() {
		if err := mux.Handle(context.Background(), d); err != nil {
			b.Fatal(err)
		}
	}
}
