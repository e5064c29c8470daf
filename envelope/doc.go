// Package envelope is the wire form of a message: the envelope itself, the
// header frame some producers put around it, and the record a message becomes
// in a dead-letter queue.
//
// It owns four things:
//
//   - the envelope of schema version 1: [New], [Decode], [Envelope.Encode], and [Writer], which makes new
//     messages faster (rules E1 to E6);
//   - the header frame of the legacy layout: [EncodeFrame], [Unframe] (F1, F2);
//   - the dead-letter record: [DeadLetterRecord] (D2);
//   - the two text edits of the attempts counter: [RaiseAttempts], the
//     reference for what the reserve script of the zset layout does (Z3), and
//     [RequeueEdit] (L6).
//
// Strings flow in and strings flow out. A body is a Go string from the moment
// it leaves Redis: it cannot change under a reader, and every part of a decoded
// envelope is a sub-string of it, so decoding copies nothing. The price is that
// a kept part (say, Envelope.TraceID) keeps the whole body in memory; use
// strings.Clone for a part that must live much longer than its message.
//
// Re-encoding and editing are different things here. Encoding writes an
// envelope anew in the one canonical form. The edits change one token of a text
// and leave every other byte alone, because other SDKs compare and remove
// messages by their bytes, and because a JSON round trip is where large numbers,
// empty arrays and key order get damaged (B30, B31).
//
// The package never talks to Redis, never logs, starts no goroutine and knows
// no key names. What it has to report (forbidden keys, poison) it returns.
package envelope
