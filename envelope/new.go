package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
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

// encodeBuffer is a buffer that JSON is encoded into, with its encoder.
type encodeBuffer struct {
	bytes.Buffer
	enc *json.Encoder
}

// keptBuffer is the largest buffer kept for the next message; one huge message must not occupy memory for
// ever.
const keptBuffer = 64 << 10

var encodeBuffers = sync.Pool{New: func() any {
	b := new(encodeBuffer)
	b.enc = json.NewEncoder(&b.Buffer)
	b.enc.SetEscapeHTML(false)
	return b
}}

// encodeData returns the compact JSON object of data.
func encodeData(data any) (string, error) {
	raw, isRaw := data.(json.RawMessage)
	if data == nil || isRaw && len(raw) == 0 {
		return "{}", nil
	}
	buf := encodeBuffers.Get().(*encodeBuffer)
	buf.Reset()
	if isRaw {
		if err := json.Compact(&buf.Buffer, raw); err != nil {
			return "", fmt.Errorf("%w: %w", ErrDataNotObject, err)
		}
	} else if err := buf.enc.Encode(data); err != nil {
		// An encoder does not go on after an error, so this one is not kept.
		return "", fmt.Errorf("envelope: encode data: %w", err)
	}
	text := string(bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}))
	if buf.Cap() <= keptBuffer {
		encodeBuffers.Put(buf)
	}
	if text == "null" && !isRaw {
		return "{}", nil
	}
	// Raw parts may hold what encoding/json lets pass: invalid UTF-8, and one
	// level of nesting more than the envelope around them leaves.
	if c := (cursor{text: text, depth: 1}); !c.object() {
		return "", fmt.Errorf("%w: %s", ErrDataNotObject, c.reason())
	}
	return text, nil
}
