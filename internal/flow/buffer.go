package flow

import "sync"

// Buffer holds reserved messages until workers take them, one queue after another by weight, so a backlog
// never stands in front of another queue's message. It has no bound of its own: the slots bound what is in it.
//
// It is a lock and not a channel per queue, because of how workers wake up: a channel wakes one waiting worker
// for each message, while here at most one worker is being woken at a time, and that one wakes the next if there
// is more. Fast handlers are then run by the few workers that are awake anyway. All methods are safe for
// concurrent use.
type Buffer struct {
	mu     sync.Mutex
	some   sync.Cond // there is something to take, or the end has come
	lines  []line
	turns  []int // queue of each turn; a queue has as many turns as its weight, spread evenly
	at     int
	size   int
	idle   int  // workers that wait
	waking bool // one of them was woken and has not looked yet
	closed bool
}

// line is the messages of one queue, oldest first.
type line struct {
	items []*Reservation
	head  int
}

// NewBuffer makes an empty buffer for queues of these weights, each at least 1.
func NewBuffer(weights []int) *Buffer {
	b := &Buffer{lines: make([]line, len(weights)), turns: spread(weights)}
	b.some.L = &b.mu
	return b
}

// spread lays out one round of turns: at each turn the queue that is furthest behind its weight goes.
func spread(weights []int) []int {
	total := 0
	for _, w := range weights {
		total += w
	}
	credit, turns := make([]int, len(weights)), make([]int, 0, total)
	for range total {
		best := 0
		for i, w := range weights {
			credit[i] += w
			if credit[i] > credit[best] {
				best = i
			}
		}
		credit[best] -= total
		turns = append(turns, best)
	}
	return turns
}

// Put adds messages of a queue, in their order. Nothing may be put after Close.
func (b *Buffer) Put(queue int, items []Reservation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.lines[queue]
	if l.head == len(l.items) {
		l.items, l.head = l.items[:0], 0
	}
	for i := range items {
		l.items = append(l.items, &items[i])
	}
	b.size += len(items)
	b.wake()
}

// Take blocks for the next message. It is false when the buffer is closed and empty.
func (b *Buffer) Take() (*Reservation, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.size == 0 {
		if b.closed {
			return nil, false
		}
		b.idle++
		b.some.Wait()
		b.idle--
		b.waking = false
	}
	l := b.next()
	r := l.items[l.head]
	l.items[l.head] = nil
	l.head++
	b.size--
	b.wake()
	return r, true
}

// next is the line of the next turn that has something.
func (b *Buffer) next() *line {
	for {
		l := &b.lines[b.turns[b.at]]
		if b.at++; b.at == len(b.turns) {
			b.at = 0
		}
		if l.head < len(l.items) {
			return l
		}
	}
}

// wake wakes a worker if there is work for one and none is being woken.
func (b *Buffer) wake() {
	if b.size > 0 && b.idle > 0 && !b.waking {
		b.waking = true
		b.some.Signal()
	}
}

// Rest takes all that is left, queue by queue, oldest first.
func (b *Buffer) Rest() []*Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*Reservation
	for i := range b.lines {
		all = append(all, b.empty(i)...)
	}
	return all
}

// RestOf takes all that is left of one queue, oldest first.
func (b *Buffer) RestOf(queue int) []*Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.empty(queue)
}

func (b *Buffer) empty(queue int) []*Reservation {
	l := &b.lines[queue]
	rest := l.items[l.head:]
	b.size -= len(rest)
	l.items, l.head = nil, 0
	return rest
}

// Len is how many messages of a queue wait for a worker.
func (b *Buffer) Len(queue int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &b.lines[queue]
	return len(l.items) - l.head
}

// Close says that nothing more will be put. Workers take what is left, then their Take is false.
func (b *Buffer) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.some.Broadcast()
}
