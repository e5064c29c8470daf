package delivery

import (
	"context"

	"github.com/babelpool/babelpool/envelope"
)

// Delivery is one message handed to a handler. It belongs to the handler until the handler returns; its
// strings may be kept.
type Delivery struct {
	envelope.Envelope

	// Queue is the logical name of the queue the message was consumed from. Meta.Queue is where it was
	// published to.
	Queue string
	// Headers are the headers of a framed message (F2); nil for a bare envelope.
	Headers map[string]string
	// Body is the unframed envelope as it is stored. In the zset layout its attempts are raised (Z3).
	Body string
	// Number is the delivery number (A1): 1 the first time. In the legacy layout it counts requeues alone,
	// because a lease that runs out leaves attempts as they are.
	Number int64
}

// Bind decodes the message's data into v as encoding/json does. Numbers keep their text until then (E6): use
// json.Number, or integer fields wide enough, for numbers beyond 2^53.
func (d *Delivery) Bind(v any) error { return d.Envelope.Bind(v) }

// Handler handles the messages of a queue. Handle returns nil to ack, an error to fail, or a verdict:
// RetryAfter or DeadLetter. Its context ends when the handler's time is over, the message's lease is lost or
// the pool's drain time is over; context.Cause tells which. Handle is called from many goroutines.
type Handler interface {
	Handle(ctx context.Context, d *Delivery) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, d *Delivery) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, d *Delivery) error { return f(ctx, d) }
