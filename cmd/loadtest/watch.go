package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/pool"
)

const (
	watchEvery   = 5 * time.Millisecond   // the error of the time of the last ack
	lookEvery    = 250 * time.Millisecond // at Redis, when the pool is idle
	leastStall   = 30 * time.Second
	depthTimeout = 2 * time.Second
)

// consumption is what was measured of the consuming period: from the pool's start, or the first publish when
// both go on at once, to the last settlement.
type consumption struct {
	from, to             time.Duration // on the clock
	redisCPU, clientCPU  time.Duration
	redisKnown, cpuKnown bool
	longestGap           time.Duration // between two looks that saw settlements
}

func (c *consumption) begin(ctx context.Context, t *trial) {
	c.redisCPU, c.redisKnown = t.srv.cpu(ctx)
	c.clientCPU, c.cpuKnown = ownCPU()
	c.from = t.clock.now()
	c.to = c.from
}

// end reads the counters again. It is called within a watch period of the last settlement, or of the end of
// patience.
func (c *consumption) end(ctx context.Context, t *trial) {
	own, ok := ownCPU()
	c.clientCPU, c.cpuKnown = own-c.clientCPU, c.cpuKnown && ok && t.srv.source != sourceMini
	used, ok := t.srv.cpu(ctx)
	c.redisCPU, c.redisKnown = used-c.redisCPU, c.redisKnown && ok
}

// patience is how long nothing may happen before the run counts as stalled: several times what a failed
// message waits, and what a handler takes or a slow -rate leaves between messages.
func (c *config) patience() time.Duration {
	d := max(3*c.retryAfter, 2*c.backoff, leastStall) + c.handlerTime.longest()
	if c.rate > 0 {
		d += time.Duration(min(2/c.rate, (1<<20)) * float64(time.Second))
	}
	return d
}

// watch follows the pool's counters until every published message is settled or ctx ends. It returns an error
// when nothing moves for too long.
func (t *trial) watch(ctx context.Context) error {
	defer t.consumption.end(ctx, t)
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var before int64
	moved, looked := t.clock.now(), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			t.look()
			if !errors.Is(context.Cause(ctx), errOver) {
				t.show.notef("interrupted: draining, then accounting for what is left")
			}
			return nil
		case <-ticker.C:
		}
		activity, now := t.look(), t.clock.now()
		if activity != before {
			before, moved = activity, now
		}
		idle := now - moved
		if t.publishingEnded.Load() {
			// With faults some settlements are not counted, and some messages settled that are neither.
			if t.cfg.chaos == nil && t.settled.Load() >= t.books.stored.Load()+t.books.doubtful.Load() {
				return nil
			}
			// The counters fall short when a message vanished, or when an ack had to be sent twice. Then the
			// keys tell that nothing will come any more.
			if idle >= lookEvery && now-looked >= lookEvery {
				looked = now
				if t.queueIsEmpty(ctx) {
					return nil
				}
			}
		}
		if t.cfg.chaos != nil && t.publishingEnded.Load() && now-t.publishEnd > chaosDrain {
			return fmt.Errorf("not everything was worked off within %s of the end of the faults", chaosDrain)
		}
		if limit := t.cfg.patience(); idle > limit {
			return fmt.Errorf("stalled: nothing was published or consumed for %s", limit)
		}
	}
}

// look reads the counters, notes the settlements and returns a number that grows with everything that
// happens.
func (t *trial) look() (activity int64) {
	c := t.consumer.counts()
	if c.Settled != t.settled.Load() {
		t.settled.Store(c.Settled)
		now := t.clock.now()
		t.consumption.longestGap = max(t.consumption.longestGap, now-t.consumption.to)
		t.consumption.to = now
	}
	return c.Activity + t.books.stored.Load() + t.books.doubtful.Load()
}

// queueIsEmpty reports whether no message is ready, in flight or delayed, all at one instant: what a handler
// works on is in flight.
func (t *trial) queueIsEmpty(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, depthTimeout)
	defer cancel()
	var depths []*redis.IntCmd
	_, err := t.srv.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		depths = append(depths, p.LLen(ctx, t.keys.Ready))
		if t.cfg.layout == pool.Zset {
			depths = append(depths, p.ZCard(ctx, t.keys.Reserved), p.ZCard(ctx, t.keys.Delayed))
		} else {
			depths = append(depths, p.LLen(ctx, t.keys.Processing))
		}
		return nil
	})
	if err != nil {
		return false
	}
	for _, d := range depths {
		if d.Val() > 0 {
			return false
		}
	}
	return true
}
