package batch

import "github.com/babelpool/babelpool/delivery"

// Message is a message in a batch. It belongs to the function until that returns.
type Message struct {
	*delivery.Delivery

	done    bool
	outcome error
}

// Done says what becomes of the message, as the return value of a handler of its own would: nil acks it, an error fails it,
// and delivery.RetryAfter, DeadLetter and Postpone are what they are elsewhere. The last call counts. Not safe for concurrent
// use on one message. Nothing is settled before the function returns.
func (m *Message) Done(outcome error) { m.done, m.outcome = true, outcome }

// Item is a message in a batch with its data as a T.
type Item[T any] struct {
	Message

	// Value is the message's data.
	Value T
}

// member is an item on its way through a batch.
type member[T any] struct {
	*Item[T]

	ended chan error // holds its outcome
}
