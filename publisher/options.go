package publisher

import "github.com/babelpool/babelpool/envelope"

// Option changes what a publish generates. The options of package envelope, such as WithCreatedAt, can be
// used here too.
type Option = envelope.Option

// WithID sets meta.id, by which consumers tell copies of a message apart from new ones. A blank id is
// ignored. Defaults to a new UUIDv4.
func WithID(id string) Option { return envelope.WithID(id) }

// WithTraceID sets trace_id: a handler that publishes passes its own message's on, to keep the chain together.
// A blank id is ignored. Defaults to a new UUIDv4.
func WithTraceID(id string) Option { return envelope.WithTraceID(id) }
