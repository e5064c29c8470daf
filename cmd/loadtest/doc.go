// Loadtest publishes messages, consumes them with a pool, and proves the result by keeping books.
//
// Every message carries the run's id, a sequence number and the time it was meant to be sent. The handler
// enters each start and each success in the books; when the pool has stopped, every key of the queue is read
// and what lies there is entered too. A published message must then be acked, in the dead letters, or still in
// one of the queue's places; one that is nowhere is lost.
//
//	go run ./cmd/loadtest                                            20,000 messages, legacy layout
//	go run ./cmd/loadtest -layout zset -json -                       the report as JSON on stdout
//	go run ./cmd/loadtest -rate 5000 -duration 10s -html load.html   latency, and a page with charts
//	go run ./cmd/loadtest -processes 4                               four consumers that compete
//	go run ./cmd/loadtest -sweep -concurrency 16,64 -prefetch 64,256 which setting is the fastest
//	go run ./cmd/loadtest -chaos -duration 30s                       a run with faults, which must lose nothing
//
// With -rate the load is an open loop: a message's latency counts from the time it was due, and messages that
// were sent late are counted as missed. With -processes the program starts itself again, once for each
// consumer; this process publishes, and the books lie in memory that all of them share, so that they close
// also when a consumer is killed. No consumer outlives the run. A sweep is one run after another, each with a
// queue of its own, on one server.
//
// With -chaos a server of the run's own is killed and started again, and so are the consumers; connections are cut,
// replies lost, and handlers do what handlers should not (package internal/chaos). When the publishing ends so do the
// faults. Then all must be worked off, and the books are looked at more closely: nothing lost, nothing stuck, no
// message taken away by a consumer that had lost it, none made twice, and no more duplicates than the faults explain.
// A fault that never happened fails the run as well: it would have proved nothing.
//
// In flow flags; out flow a table, the report, a page and the exit code: 0 when the books balance, 1 when they
// do not or the run failed, 2 when the flags make no sense. The queue's name is the run's own, and only its
// keys are removed at the end.
package main
