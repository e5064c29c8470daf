package envelope

import (
	"strings"
	"time"
)

// Lang is the language tag this package puts into meta.lang and into
// dead-letter records.
const Lang = "go"

// Option changes what New generates.
type Option func(*Envelope)

// WithID sets meta.id. A blank id is ignored. Defaults to a new UUIDv4.
func WithID(id string) Option {
	return func(e *Envelope) {
		if strings.TrimSpace(id) != "" {
			e.Meta.ID = id
		}
	}
}

// WithTraceID sets trace_id, to keep a chain of messages together. A blank id
// is ignored. Defaults to a new UUIDv4.
func WithTraceID(id string) Option {
	return func(e *Envelope) {
		if strings.TrimSpace(id) != "" {
			e.TraceID = id
		}
	}
}

// WithCreatedAt sets meta.created_at, which holds whole milliseconds. Defaults
// to the time of the call.
func WithCreatedAt(t time.Time) Option {
	return func(e *Envelope) { e.Meta.CreatedAt = t.UnixMilli() }
}

// New makes the envelope of a new message, with attempts 0 (E2). The URN is
// trimmed; a blank one is ErrEmptyURN. The queue is the logical name, not a
// Redis key, and is not checked here.
//
// The data becomes one JSON object: nil, a nil map and a nil pointer become {};
// a json.RawMessage is compacted and otherwise kept, numbers digit for digit
// (E6); everything else goes through encoding/json without HTML escaping. What
// is not an object then is ErrDataNotObject; what encoding/json refuses is its
// error, wrapped.
func New(urn, queue string, data any, opts ...Option) (Envelope, error) {
	urn = strings.TrimSpace(urn)
	if urn == "" {
		return Envelope{}, ErrEmptyURN
	}
	text, err := encodeData(data)
	if err != nil {
		return Envelope{}, err
	}
	e := Envelope{URN: urn, Data: text, Meta: Meta{Queue: queue, Lang: Lang, CreatedAt: time.Now().UnixMilli()}}
	for _, opt := range opts {
		opt(&e)
	}
	if e.TraceID == "" {
		e.TraceID = newID()
	}
	if e.Meta.ID == "" {
		e.Meta.ID = newID()
	}
	return e, nil
}
