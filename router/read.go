package router

import (
	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// read makes a Delivery of a reservation: frame off (F3, F4), envelope decoded (E3), delivery number counted
// (A1). The error is an *envelope.PoisonError.
func read(q *Queue, r *flow.Reservation) (*delivery.Delivery, error) {
	frame, framed := envelope.Unframe(r.Text)
	body := r.Text
	if framed {
		body = frame.Body
	}
	e, err := envelope.Decode(body)
	if err != nil {
		return nil, err
	}
	d := &delivery.Delivery{Envelope: e, Queue: q.Name, Headers: frame.Headers, Body: body}
	if q.Layout == flow.Legacy {
		d.Number = max(e.Attempts, e.Attempts+1) // the largest attempts has no successor
		return d, nil
	}
	if framed && frame.Attempts >= 0 {
		d.Attempts = frame.Attempts // the reserve script raised the frame's own counter (F4)
	}
	d.Number = d.Attempts
	return d, nil
}
