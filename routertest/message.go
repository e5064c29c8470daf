package routertest

import (
	"context"
	"fmt"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// Layout is how the queue that the message is thought to come from lies in Redis.
type Layout = flow.Layout

// The layouts of the contract.
const (
	Legacy = flow.Legacy // a list; the default (rules L)
	Zset   = flow.Zset   // compatible with Laravel's queue (rules Z)
)

// Message is a message as a producer makes it. The zero value of every field is its default.
type Message struct {
	// URN is what the message is routed by. Required, unless Text is set.
	URN string
	// Data becomes the message's data, as publisher.Publish takes it. Defaults to {}.
	Data any
	// ID is meta.id, and TraceID is trace_id. They default to new UUIDs.
	ID, TraceID string
	// Headers go into a frame (F1). In the zset layout there are none: they are dropped, as when publishing (F4).
	Headers map[string]string
	// Attempts is how often the message was charged an attempt before: the handler sees delivery number
	// Attempts + 1 (A1).
	Attempts int64
	// CreatedAt is when it was produced. Defaults to now.
	CreatedAt time.Time
	// Text is the whole stored value, in place of all of the above: for poison, jobs of other systems, or a
	// message that was kept from somewhere.
	Text string
}

// text is the message as it stands in ready.
func (m Message) text(layout Layout, queue string) string {
	if m.Text != "" {
		return m.Text
	}
	created := m.CreatedAt
	if created.IsZero() {
		created = time.Now()
	}
	e, err := envelope.New(m.URN, queue, m.Data,
		envelope.WithID(m.ID), envelope.WithTraceID(m.TraceID), envelope.WithCreatedAt(created))
	if err != nil {
		panic(fmt.Sprintf("routertest: no message can be made: %v", err))
	}
	e.Attempts = m.Attempts
	if layout == Zset || len(m.Headers) == 0 {
		return e.Encode()
	}
	return envelope.EncodeFrame(e.Encode(), m.Headers)
}

// reserve makes the reservation that a store makes of a ready text. It is false for what the reserve script refuses:
// in the zset layout, a text whose attempts cannot be raised (Z3).
func reserve(layout Layout, ready string) (*flow.Lease, bool) {
	l := flow.NewLease(0, 1)
	r := &l.Items[0]
	r.Text, r.Handle = ready, ready
	if layout == Legacy {
		return l, true
	}
	raised, _, err := envelope.RaiseAttempts(ready)
	if err != nil {
		return nil, false
	}
	r.Text, r.Handle, r.Edit = raised, raised, flow.Edit{Length: len(raised), Old: ready}
	return l, true
}

// Delivery makes the delivery that a handler gets of a message, as from a legacy queue named "test". It panics when
// there is none: the message is poison, or its data cannot be encoded.
func Delivery(m Message) *delivery.Delivery {
	var made *delivery.Delivery
	kit := New(Config{Handler: delivery.HandlerFunc(func(_ context.Context, d *delivery.Delivery) error {
		made = d
		return nil
	})})
	if out := kit.Run(context.Background(), m); made == nil {
		panic(fmt.Sprintf("routertest: no handler gets this message: %v", out.Err))
	}
	return made
}
