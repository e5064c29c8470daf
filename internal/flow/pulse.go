package flow

import (
	"sync/atomic"
	"time"
)

// Pulse tells from outside whether a loop still turns. The zero value rests. All methods are safe for concurrent use.
//
// A loop beats when a turn begins, and rests before it waits for something that may take any time: a message, a free
// slot, the end of a pause. What is bounded, such as a call to Redis, belongs to the turn.
type Pulse struct {
	began atomic.Int64 // when the present turn began, lease clock; 0 = it rests
}

// Beat says that a turn begins now.
func (p *Pulse) Beat() { p.began.Store(clock(time.Now())) }

// Rest says that the loop waits for something that may take any time, or has ended.
func (p *Pulse) Rest() { p.began.Store(0) }

// Turn is how long the present turn has lasted at now, at least a nanosecond; 0 while the loop rests.
func (p *Pulse) Turn(now time.Time) time.Duration {
	began := p.began.Load()
	if began == 0 {
		return 0
	}
	return max(1, time.Duration(clock(now)-began))
}
