package main

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/babelpool/babelpool/internal/retry"
)

// pacer says which messages are to be published next, and when. It is safe for concurrent use.
type pacer struct {
	clock clock
	batch int64         // most messages at a time
	limit int64         // messages in all, 0 = no limit
	until time.Duration // publish for so long, 0 = no limit
	rate  float64       // messages per second, 0 = as fast as possible

	mu    sync.Mutex
	begun bool
	start time.Duration // of the first message, on the clock
	next  int64
}

// slice are messages to publish now: those from first, count of them.
type slice struct {
	first, count int64
}

// take waits until messages are due and returns them. ok is false when there are no more, or ctx has ended.
//
// With a rate the load is an open loop: message i is due at start + i/rate, however long the server takes for
// those before it. One goroutine at a time waits here; the others queue behind it.
func (p *pacer) take(ctx context.Context) (s slice, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun {
		p.begun, p.start = true, p.clock.now()
	}
	for ctx.Err() == nil {
		passed := p.clock.now() - p.start
		if p.over(passed) {
			break
		}
		count := p.batch
		if p.rate > 0 {
			// No more than have been due by now; min before the conversion, which huge numbers do not survive.
			count = int64(min(float64(p.batch), math.Floor(passed.Seconds()*p.rate)+1-float64(p.next)))
		}
		if p.limit > 0 {
			count = min(count, p.limit-p.next)
		}
		if count > 0 {
			s = slice{p.next, count}
			p.next += count
			return s, true
		}
		if retry.Sleep(ctx, p.due(p.next)-passed) != nil {
			break
		}
	}
	return slice{}, false
}

// over reports whether the last message has been handed out, when so much time has passed.
func (p *pacer) over(passed time.Duration) bool {
	if p.limit > 0 && p.next >= p.limit {
		return true
	}
	return p.until > 0 && (passed >= p.until || p.rate > 0 && p.due(p.next) >= p.until)
}

// due is when message i is due, from the start.
func (p *pacer) due(i int64) time.Duration {
	return time.Duration(min(float64(i)/p.rate*float64(time.Second), math.MaxInt64/2))
}

// intended is the send time of message i on the clock: its due time, or now when there is no rate.
func (p *pacer) intended(i int64) time.Duration {
	if p.rate == 0 {
		return p.clock.now()
	}
	return p.start + p.due(i) // start is set once, before the first message was handed out
}
