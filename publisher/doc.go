// Package publisher puts BabelQueue messages into a queue: one, a batch, one with a delay, one with headers,
// or one inside a transaction of the caller's own.
//
// It owns the way from a URN and data to stored bytes: it makes the envelope (E2), frames it when there are
// headers (F1), cuts batches into commands of a bounded size, and sorts what can go wrong. In flow Go values,
// out flows one Redis command per call or chunk, and the meta.id of each message.
//
// # What a failure means
//
// Every failed call says whether the message can be in the queue. The error matches exactly one of:
//
//   - [ErrMayBeStored]: the command was sent and its reply was lost. The only class that leaves it open.
//   - [ErrUnavailable]: nothing is stored, and the same call can succeed later; with [ErrFull] beside it when
//     the server is at its memory limit.
//   - [ErrRefused]: nothing is stored, and the call fails until somebody changes the server or its keys.
//   - [ErrNotSent]: nothing is stored, because the context had ended before, or an earlier part of the batch
//     failed.
//   - [ErrEncode], [ErrNoDelay], [ErrNegativeDelay], [ErrDuplicateBody]: the message or the call itself.
//
// The package never repeats a command, and marks each so that the client library does not either: a resent
// publish is a second message that nobody asked for (B03). It does not repeat those either that are known
// to be unsent, because only the caller knows how long its own caller can wait. A caller that repeats a
// publish passes the id it was given with [WithID], so that consumers can tell a copy by meta.id.
//
// # What it never does
//
// It never closes the client, starts a goroutine, buffers a message beyond the call, waits between tries, or
// writes a body to the log or into an error.
package publisher
