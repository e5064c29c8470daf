package flow

import (
	"sync/atomic"
	"time"
)

// Counters count what happened in one queue of a pool. Each actor adds to its own; anyone may read.
type Counters struct {
	Reserved     atomic.Int64             // messages reserved
	Started      atomic.Int64             // handlers started
	Acked        atomic.Int64             // messages removed after success
	Failed       atomic.Int64             // handler runs that failed, panics and timeouts included
	Panics       atomic.Int64             // handler runs that panicked or called runtime.Goexit
	Released     atomic.Int64             // messages put in delayed, charged
	Returned     atomic.Int64             // messages that come back later, uncharged
	Requeued     atomic.Int64             // messages requeued with attempts raised (legacy)
	Left         atomic.Int64             // messages left to their lease
	DeadLettered atomic.Int64             // messages put in the dead letters, poison included
	DeadBy       [Poison + 1]atomic.Int64 // those by Reason
	HandedBack   atomic.Int64             // messages returned to the head of ready
	Postponed    atomic.Int64             // handler runs that put their message off
	UnknownURN   atomic.Int64             // messages without a handler
	Poison       atomic.Int64             // messages that are no acceptable envelope
	Late         atomic.Int64             // settlements that came after the lease was gone
	Missing      atomic.Int64             // settlements whose value had left processing
	Lost         atomic.Int64             // reservations found lost by a renewal, or expired before they could start
	Moved        atomic.Int64             // expired or due messages moved to ready
	Renewed      atomic.Int64             // leases renewed, counted by message
	Orphans      atomic.Int64             // orphans at the last audit (L7)
	Adopted      atomic.Int64             // orphans adopted
	WorkersLost  atomic.Int64             // messages given up because workers were lost with them (B21)
	Discarded    atomic.Int64             // dead letters discarded by a limit (B42)
	Reconnects   atomic.Int64             // times Redis answered again after it had not
	Away         Pulse                    // beats when Redis stops answering, rests when it answers
}

// DeadLetter counts a message that was put in the dead letters.
func (c *Counters) DeadLetter(why Reason) {
	c.DeadLettered.Add(1)
	c.DeadBy[why].Add(1)
}

// Answered notes whether Redis answered a call made for the queue.
func (c *Counters) Answered(yes bool) {
	away := &c.Away.began
	switch {
	case !yes:
		away.CompareAndSwap(0, clock(time.Now()))
	case away.Load() != 0 && away.Swap(0) != 0: // of several callers, one has seen the end
		c.Reconnects.Add(1)
	}
}
