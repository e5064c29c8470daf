package slots

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// act is one thing that happens to a queue.
type act struct {
	Queue   int
	Acquire int // most slots; 0 = release instead
	Bytes   int64
	Give    bool // the waiting call is given up
}

// TestPoolProperty runs random calls, one waiting call per queue at most as in a pool, and looks at the books
// whenever nothing can move any more.
func TestPoolProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 5).Draw(rt, "weights")
		n := rapid.IntRange(len(weights), 80).Draw(rt, "slots")
		bytes := rapid.Int64Range(1, 300).Draw(rt, "bytes")
		acts := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) act {
			a := act{Queue: rapid.IntRange(0, len(weights)-1).Draw(rt, "queue")}
			switch rapid.IntRange(0, 9).Draw(rt, "kind") {
			case 0:
				a.Give = true
			case 1, 2, 3, 4:
				a.Acquire = rapid.IntRange(1, 100).Draw(rt, "most")
				a.Bytes = rapid.Int64Range(1, 400).Draw(rt, "most bytes")
			}
			return a
		}), 1, 60).Draw(rt, "acts")

		var problem error
		synctest.Test(t, func(t *testing.T) { problem = play(t.Context(), n, bytes, weights, acts) })
		if problem != nil {
			rt.Fatal(problem)
		}
	})
}

// holding is what a queue holds and waits for.
type holding struct {
	slots   int
	bytes   int64
	waiting *asked
	give    context.CancelFunc
	most    int
	budget  int64
}

func play(ctx context.Context, n int, bytes int64, weights []int, acts []act) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, held := New(n, bytes, weights), make([]holding, len(weights))
	for i, a := range acts {
		h := &held[a.Queue]
		switch {
		case a.Give && h.waiting != nil:
			h.give()
		case a.Acquire > 0 && h.waiting == nil:
			own, give := context.WithCancel(ctx)
			h.waiting, h.give, h.most, h.budget = ask(own, p, a.Queue, a.Acquire, a.Bytes), give, a.Acquire, a.Bytes
		case a.Acquire == 0 && h.slots > 0:
			// Every third message is larger than the bytes taken for it, and pays the overshoot back later.
			over := int64(0)
			if i%3 == 0 {
				over = 50
			}
			p.Release(a.Queue, 0, -over)
			p.Release(a.Queue, h.slots, h.bytes+over)
			h.slots, h.bytes = 0, 0
		}
		synctest.Wait()
		if err := settled(p, n, bytes, held); err != nil {
			return fmt.Errorf("after act %d, %+v: %w", i, a, err)
		}
	}
	cancel()
	synctest.Wait()
	return nil
}

// settled collects what the waiting calls got, and checks that nothing is lost, nothing is given twice, and
// nobody waits beside something it may have.
func settled(p *Pool, n int, bytes int64, held []holding) error {
	used, usedBytes := 0, int64(0)
	for q := range held {
		h := &held[q]
		if h.waiting != nil {
			select {
			case <-h.waiting.done:
				if err := h.collect(); err != nil {
					return fmt.Errorf("queue %d: %w", q, err)
				}
			default:
			}
		}
		used += h.slots
		usedBytes += h.bytes
		if p.queues[q].used != h.slots || p.queues[q].waiting != (h.waiting != nil) {
			return fmt.Errorf("queue %d: %+v in the pool, holds %d", q, p.queues[q], h.slots)
		}
	}
	free, freeBytes := p.Free()
	if used > n || free < 0 || used+free != n || usedBytes+freeBytes != bytes {
		return fmt.Errorf("%d used and %d free of %d, %d and %d of %d bytes", used, free, n, usedBytes, freeBytes, bytes)
	}
	if free == 0 || freeBytes <= 0 {
		return nil
	}
	for q := range held {
		if held[q].waiting == nil {
			continue
		}
		if p.queues[q].used < p.queues[q].share {
			return fmt.Errorf("queue %d is below its share and waits beside %d free slots", q, free)
		}
		kept := 0
		for other := range held {
			if other != q {
				kept += max(0, p.queues[other].floor-p.queues[other].used)
			}
		}
		if free > kept {
			return fmt.Errorf("queue %d waits, %d slots are free and only %d are kept for others", q, free, kept)
		}
	}
	return nil
}

// collect takes over what a call that has returned got.
func (h *holding) collect() error {
	a := h.waiting
	h.waiting = nil
	h.give()
	if a.err != nil {
		if a.n != 0 || a.bytes != 0 {
			return fmt.Errorf("%d slots and %d bytes beside an error", a.n, a.bytes)
		}
		return nil
	}
	if a.n < 1 || a.n > h.most || a.bytes < 1 || a.bytes > h.budget {
		return fmt.Errorf("got %d slots and %d bytes, asked for %d and %d at most", a.n, a.bytes, h.most, h.budget)
	}
	h.slots += a.n
	h.bytes += a.bytes
	return nil
}
