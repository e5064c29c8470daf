package flow

import "sync/atomic"

// Recovery is what is known of a message whose workers were lost: its lease ran out and nobody had ended it (B21).
type Recovery struct {
	Workers int64 // how many were lost with it, before this reservation
	Solo    *Solo // held by the message, which is in its last chance; nil = it is not, or runs without
}

// Solo is the right to hold a message in its last chance: one more lost worker, and it is dead-lettered. A pool has
// one, for all its queues, and so never holds two such messages: a process that dies takes at most one with it, and
// the neighbours of a message that kills are told apart from it. Safe for concurrent use.
type Solo struct {
	held  atomic.Bool
	freed chan struct{} // capacity 1
}

// NewSolo makes a right that nobody holds.
func NewSolo() *Solo { return &Solo{freed: make(chan struct{}, 1)} }

// Take takes the right, if it is free.
func (s *Solo) Take() bool { return s.held.CompareAndSwap(false, true) }

// Return gives back a right that was not used.
func (s *Solo) Return() { s.held.Store(false) }

// Free gives the right back after a message was settled, and wakes one who waits for it.
func (s *Solo) Free() {
	s.held.Store(false)
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// Freed receives after a Free.
func (s *Solo) Freed() <-chan struct{} { return s.freed }

// WorkersLost is how many workers were lost with the message before, as far as they are counted.
func (r *Reservation) WorkersLost() int64 {
	if r.Recovery == nil {
		return 0
	}
	return r.Recovery.Workers
}
