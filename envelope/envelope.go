package envelope

import (
	"encoding/json"
	"fmt"
)

// SchemaVersion is the only meta.schema_version this package writes and
// accepts (E3).
const SchemaVersion = 1

// MaxCounter is the largest attempts value an edit may produce, 2^53-1 (Z3).
// Above it a counter is no longer exact in the doubles that Lua, JavaScript and
// many JSON readers count with. It bounds the number itself and has nothing to
// do with how often a pool retries a message.
const MaxCounter = 9_007_199_254_740_991

// Envelope is one message, decoded from its wire text or about to be encoded.
// Every string of a decoded envelope is a sub-string of the body unless it was
// spelt with escapes.
type Envelope struct {
	// URN names the kind of message, without surrounding white space. It is
	// read from job, or from the alias urn when job is missing or blank (E3),
	// and always written as job.
	URN string

	// TraceID correlates messages of one causal chain; never blank once decoded.
	TraceID string

	// Data is the payload as raw JSON text, one object, exactly as it stood in
	// the body: numbers keep their digits (E6). Empty is encoded as {}.
	Data string

	// Meta is what the producer said about the message.
	Meta Meta

	// Attempts is the top-level counter as it stands in the text, 0 when it is
	// missing. What it says about deliveries depends on the layout (A1).
	Attempts int64

	// DeadLetter is the raw JSON value of dead_letter, "" when there is none.
	DeadLetter string

	// Extra holds the unknown top-level members in their order, each value byte
	// for byte (E4). A key that stands several times is held several times. The
	// alias urn is among them, last, when job gave the URN.
	Extra []Member

	// ForbiddenKeys lists JSON pointers such as "/timestamp" and
	// "/meta/attempts" of the keys that Decode met and encoding will not emit
	// (E5), each once; nil when there were none. The caller logs them. Encoding
	// ignores this field.
	ForbiddenKeys []string
}

// Meta is the producer's description of a message.
//
// A consumer needs only schema_version (E3), which is therefore not a field:
// it is 1. The other four may be missing or of another type in a body that
// Decode accepts. Such a field is left zero, and a value of another type is
// kept in Extra under its own name, after the unknown keys, so that encoding
// carries it like one. A missing one is written as its zero value.
type Meta struct {
	// ID identifies this message; the idempotency key.
	ID string

	// Queue is the logical queue name, never a Redis key.
	Queue string

	// Lang is the language tag of the producer, "go" for New.
	Lang string

	// CreatedAt is the time of production in Unix milliseconds.
	CreatedAt int64

	// Extra holds the unknown members of meta in their order, values byte for
	// byte (E4).
	Extra []Member
}

// Member is one member of a JSON object that this package carries without
// understanding it.
type Member struct {
	// Name is the key with its escapes resolved. An escaped lone surrogate
	// reads as U+FFFD, as it does in encoding/json.
	Name string

	// Value is the raw JSON text of the value.
	Value string
}

// Bind decodes Data into v with encoding/json, so v follows that package's
// rules: decode large integers into int64, uint64 or json.Number, because a
// plain any makes them float64. Empty Data reads as {}. The error wraps the one
// of encoding/json.
func (e Envelope) Bind(v any) error {
	data := e.Data
	if data == "" {
		data = "{}"
	}
	// The conversion copies. Handing encoding/json the string's own bytes would
	// save that, but a caller's UnmarshalJSON could then write into a body that
	// is still the handle for settling the message.
	if err := json.Unmarshal([]byte(data), v); err != nil {
		return fmt.Errorf("envelope: bind data: %w", err)
	}
	return nil
}
