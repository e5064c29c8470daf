package main

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
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

// missedAfter is how late a message may be sent. Timers and the scheduler of a machine that has time to spare
// are a few milliseconds late; beyond this the sender was held up, and the load was not what -rate asks for.
const missedAfter = 10 * time.Millisecond

// lateness is how far the sends lag behind their intended times, which the pacer sets. Safe for concurrent use.
type lateness struct {
	missed atomic.Int64 // messages sent more than missedAfter too late
	most   atomic.Int64 // nanoseconds
}

// sent notes a message that was sent so long after its time.
func (l *lateness) sent(late time.Duration) {
	if late > missedAfter {
		l.missed.Add(1)
	}
	for most := l.most.Load(); int64(late) > most; most = l.most.Load() {
		l.most.CompareAndSwap(most, int64(late))
	}
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
		if p.rate > 0 && p.due(p.next) > passed {
			if retry.Sleep(ctx, p.due(p.next)-passed) != nil {
				break
			}
			continue
		}
		s = slice{p.next, p.count(passed)}
		p.next += s.count
		return s, true
	}
	return slice{}, false
}

// count is how many messages to hand out at once, when so much time has passed and the next one is due.
func (p *pacer) count(passed time.Duration) int64 {
	n := p.batch
	if p.rate > 0 {
		if p.until > 0 {
			passed = min(passed, p.until-1)
		}
		// No more than are due; as numbers with a point, because a rate can be too large for others.
		due := math.Floor(passed.Seconds()*p.rate) + 1 - float64(p.next)
		n = int64(max(1, min(due, float64(n))))
	}
	if p.limit > 0 {
		n = min(n, p.limit-p.next)
	}
	return n
}

// over reports whether the last message has been handed out, when so much time has passed. With a rate, what
// is due within the time is still sent when it is over, if it is one batch at most; a publisher that is
// further behind than that would never end.
func (p *pacer) over(passed time.Duration) bool {
	switch {
	case p.limit > 0 && p.next >= p.limit:
		return true
	case p.until == 0:
		return false
	case p.rate == 0:
		return passed >= p.until
	}
	return p.due(p.next) >= p.until || passed >= p.until && p.due(p.next+p.batch) < p.until
}

// due is when message i is due, from the start.
func (p *pacer) due(i int64) time.Duration {
	return time.Duration(min(math.Round(float64(i)/p.rate*float64(time.Second)), math.MaxInt64/2))
}

// intended is the send time of message i on the clock: its due time, or now when there is no rate.
func (p *pacer) intended(i int64) time.Duration {
	if p.rate == 0 {
		return p.clock.now()
	}
	return p.start + p.due(i) // start is set once, before the first message was handed out
}
