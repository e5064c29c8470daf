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
package router
