// Package tracing traces messages with OpenTelemetry, with the span names and attributes that other SDKs of the contract
// use. Nothing of it, and nothing of OpenTelemetry, is linked into a program that does not import it.
//
//	mux.Use(tracing.Middleware(tracing.Config{}))
//	orders := tracing.NewPublisher(plain, tracing.Config{})
//
// In flow deliveries and what a program publishes; out flow the same and spans: "process <urn>" (consumer) around each run
// of a handler, and "publish <urn>" (producer) around each publish. Their attributes are messaging.system,
// messaging.operation, messaging.destination.name (where a message was published to, and for a publish the URN),
// messaging.message.id, messaging.message.conversation_id (the trace_id) and messaging.babelqueue.attempts.
//
// # How a trace goes on
//
// A publish is a child of the context's span. In the legacy layout the message carries it in the header traceparent, and
// the span of its handler is a child of that one. The zset layout carries no headers (F4), nor do PublishIn and
// PublishEnvelope: there a message carries the trace in its trace_id. The handler's span is then the child of a remote span that nobody
// records, and that all SDKs derive alike: its trace is the UUID in the trace_id, or the first 16 bytes of the SHA-256 of
// what is no UUID, its span id the first 8 bytes of the SHA-256 of "babelqueue-span:" and the trace_id.
//
// So that both ways lead to one trace, a message gets the trace_id of its caller (publisher.WithTraceID), else that of the
// message whose handler publishes it, else the trace of its span. A publish without a span in its context starts in the
// trace of its trace_id, when it has one. A caller that sets a trace_id of its own inside a span makes the two differ: the
// header then leads to the span's trace, the trace_id to its own, and messaging.message.conversation_id tells them together.
//
// A redelivery, as far as the message tells one (a delivery number above 1; in the legacy layout only requeues raise it),
// is a sibling of the first delivery. It has a link to the span that the message came from, with the attribute
// messaging.babelqueue.delivery, so redeliveries can be asked for.
//
// # What it never does
//
// It puts no body, header or data into a span; an error's text goes there as it is. It has no exporter, and changes neither
// an outcome nor what a panic is to the pool.
package tracing
