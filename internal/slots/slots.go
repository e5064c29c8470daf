// Package slots shares a pool's capacity between its queues: how many messages may be held at once, and
// how many bytes of bodies.
//
// A reserver takes slots before it asks Redis and the acker frees them when a settlement is applied, so
// the capacity bounds everything in between: buffers, running handlers, settlements that wait for Redis.
// It knows nothing of messages.
package slots

import (
	"context"
	"sync"
)

// Pool is the shared capacity. It is safe for concurrent use.
type Pool struct {
	mu     sync.Mutex
	free   int
	bytes  int64 // free bytes; below zero while one body larger than the rest is in flight
	queues []queue
	wake   chan struct{} // closed and replaced when something is freed
}

type queue struct {
	share   int // slots that are its own by weight
	floor   int // slots never lent to others while it uses fewer
	used    int
	waiting bool // for a slot, now
	hungry  bool // its last call left messages in Redis (Demand)
}

// New makes a pool of n slots and the given bytes, shared by weight. n must be at least len(weights), and
// each weight at least 1.
func New(n int, bytes int64, weights []int) *Pool {
	total := 0
	for _, w := range weights {
		total += w
	}
	p := &Pool{free: n, bytes: bytes, queues: make([]queue, len(weights)), wake: make(chan struct{})}
	for i, w := range weights {
		share := max(1, n*w/total)
		// An eighth of its share stays ready for a queue that wakes up: enough for a first batch, while the
		// rest of an idle share is lent.
		p.queues[i] = queue{share: share, floor: max(1, share/8)}
	}
	if len(weights) == 1 {
		p.queues[0].floor = 0
	}
	return p
}

// Acquire blocks until at least one slot and one byte are free for queue q, then takes up to most slots
// and up to most bytes. Give back what Redis did not fill with Release.
//
// A queue below its share is served first; above it, it borrows what no other queue needs: not the floors
// of the others, and nothing while a queue below its share waits or has demand.
func (p *Pool) Acquire(ctx context.Context, q, most int, mostBytes int64) (n int, bytes int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		n = p.grant(q, most)
		if n > 0 && p.bytes > 0 {
			bytes = min(p.bytes, mostBytes)
			p.queues[q].used += n
			p.free -= n
			p.bytes -= bytes
			p.served(q)
			return n, bytes, nil
		}
		p.queues[q].waiting = true
		wake := p.wake
		p.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		p.mu.Lock()
		if err != nil {
			p.served(q)
			return 0, 0, err
		}
	}
}

// served notes that q waits no longer. What was held for it until now may be lent again, so those who wait
// look again: the free slots would lie idle until the next Release.
func (p *Pool) served(q int) {
	if p.queues[q].waiting {
		p.queues[q].waiting = false
		p.wakeAll()
	}
}

func (p *Pool) wakeAll() {
	close(p.wake)
	p.wake = make(chan struct{})
}

// grant is how many slots q may take now.
func (p *Pool) grant(q, most int) int {
	own := p.queues[q].share - p.queues[q].used
	lendable, needed := p.free, false
	for i := range p.queues {
		if i == q {
			continue
		}
		other := &p.queues[i]
		needed = needed || (other.waiting || other.hungry) && other.used < other.share
		lendable -= max(0, other.floor-other.used)
	}
	if needed {
		lendable = 0
	}
	return min(most, max(lendable, min(own, p.free)))
}

// Demand says whether queue q is known to have more messages than it was given. While such a queue is below its
// share nobody borrows, also while its reserver is away with a call and does not wait for a slot: else a light
// queue would take what a heavy one frees, and weights would mean little in a shallow buffer.
func (p *Pool) Demand(q int, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[q].hungry == more {
		return
	}
	p.queues[q].hungry = more
	if !more {
		p.wakeAll()
	}
}

// Share is how many slots are queue q's own by weight.
func (p *Pool) Share(q int) int { return p.queues[q].share }

// Release gives back n slots and bytes of queue q. bytes is negative when the one body that crossed the
// budget was larger than what was acquired, and n when messages came to light for which no slots were kept: nobody is
// given any until as many are back.
func (p *Pool) Release(q, n int, bytes int64) {
	if n == 0 && bytes == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues[q].used -= n
	p.free += n
	p.bytes += bytes
	p.wakeAll()
}

// Free is the number of free slots and bytes.
func (p *Pool) Free() (n int, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free, p.bytes
}
