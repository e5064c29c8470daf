// Package router runs handlers: N workers take reservations from the queues' buffers by weight, decode them,
// dispatch them by URN, and send the acker one settlement each.
//
// In: a Source of reservations, ended by the pool. Out: one channel of settlements per queue,
// with room for all that can be in flight, so a worker never waits for Redis. The package decides what becomes
// of a message (rules A, D, L6, Z5 to Z8) and survives whatever a handler does; it never talks to Redis.
//
// Mux, Typed and the middleware are the part meant for users; the rest is wired by package pool.
//
// # Handlers
//
// A handler is a delivery.Handler; Mux.Register and Mux.HandleFunc name the URN it is for. Typed makes one of a function
// that takes the data as a type of the program, and dead-letters what does not fit that type with the field named.
//
// # Middleware
//
// Mux.Use puts middleware around every handler; the first added is the outermost. This order works, from the outside
// inwards:
//
//  1. Logging, and whatever else looks on (metrics, traces): outermost, so that it sees the last word on each run and
//     the whole time, waits included.
//  2. Recovery: right inside of what looks on, so that a panic of anything further in is an error there. Without it a
//     panic passes through them; the pool treats it the same either way.
//  3. What refuses messages by their content (schema), before they cost anything.
//  4. What makes messages wait or postpones them, before their own time begins.
//  5. What remembers messages (idempotency): it must not note one that then waits.
//  6. Timeout, Timeouts: innermost, so that the time is the handler's own.
//
// Middleware does not see messages without a handler, nor poison.
package router
