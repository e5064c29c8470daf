package pool

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// QueueDepth is what a queue holds in Redis now, whoever consumes it.
type QueueDepth struct {
	Name        string
	Layout      Layout
	Ready       int64
	InFlight    int64 // reserved by any process
	Delayed     int64 // zset: due later
	DeadLetters int64
	// Oldest is when the message at the head of ready, the next one to be taken, was created, by its producer's clock.
	// Zero where ready is empty, or the head does not tell: poison, or a job of another system.
	Oldest time.Time
}

// Age is how old the message at the head of ready is at now, never below 0. ok is false where nobody knows; an empty
// queue is of age 0.
func (d QueueDepth) Age(now time.Time) (age time.Duration, ok bool) {
	if d.Ready > 0 && d.Oldest.IsZero() {
		return 0, false
	}
	if d.Oldest.IsZero() {
		return 0, true
	}
	return max(0, now.Sub(d.Oldest)), true
}

// Depths asks Redis what the pool's queues hold, in the order of Config.Queues, with one round trip for each. It costs the
// same whatever they hold, and needs LLEN, ZCARD and LINDEX alone. A queue that could not be read is left out, and the
// error, all of them joined, names it.
//
// It returns ErrNotStarted before Run consumes. ctx bounds the calls where the client honours deadlines. Safe for
// concurrent use.
func (p *Pool) Depths(ctx context.Context) ([]QueueDepth, error) {
	t := p.topology.Load()
	if t == nil {
		return nil, ErrNotStarted
	}
	var depths []QueueDepth
	var problems []error
	for i, q := range t.queues {
		d, err := t.stores[i].Depth(ctx)
		if err != nil {
			problems = append(problems, fmt.Errorf("pool: queue %q: %w", q.Name, err))
			continue
		}
		depth := QueueDepth{
			Name: q.Name, Layout: q.Layout, Ready: d.Ready, InFlight: d.InFlight, Delayed: d.Delayed, DeadLetters: d.DeadLetters,
		}
		if d.Oldest != 0 {
			depth.Oldest = time.UnixMilli(d.Oldest)
		}
		depths = append(depths, depth)
	}
	return depths, errors.Join(problems...)
}
