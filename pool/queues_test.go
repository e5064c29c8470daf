package pool_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestKeys covers R5 and D1: every key a queue of a layout has, the prefix before each, and none besides.
func TestKeys(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		r.push(body(1, 0))
		p := r.start(cfg)
		receive(t, b.running, "the handler runs")
		if r.layout == pool.Zset {
			r.wantKeys("queues:orders:reserved")
		} else {
			r.wantKeys("orders:processing", "orders:processing:deadlines")
		}
		r.pushBare("5")
		p.settled(1)
		if r.layout == pool.Zset {
			r.wantKeys("queues:orders:reserved", "queues:orders.dlq", "queues:orders.dlq:notify")
		} else {
			r.wantKeys("orders:processing", "orders:processing:deadlines", "orders.dlq")
		}
		b.letGo()
		p.settled(2)
		if r.layout == pool.Zset {
			r.wantKeys("queues:orders.dlq", "queues:orders.dlq:notify")
		} else {
			r.wantKeys("orders.dlq")
		}
	})
}

// TestDelayedKey covers the zset layout's fourth key.
func TestDelayedKey(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		cfg := r.config(function(fail))
		cfg.FailureDelay = ptr(60.0)
		r.push(body(1, 0))
		r.start(cfg).settled(1)
		r.wantKeys("queues:orders:delayed")
	})
}

// TestDeadLetterKey covers D1: a physical key of the user's choice gets no prefix and no token, neither from a
// handler's failure nor from the reserve script.
func TestDeadLetterKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		cfg := r.config(function(func(context.Context, *delivery.Delivery) error { return delivery.DeadLetter(errBoom) }))
		r.keys.dead = r.Prefix + "graveyard"
		cfg.KeyPrefix, cfg.Queues[0].DeadLetterKey = r.Prefix, r.keys.dead
		r.push(body(1, 0), "5")
		r.start(cfg).settled(2)
		n := first(r.layout)
		wantEqual(t, "dead letters", sortedBriefs(r.awaitSettled().Dead), sortedBriefs([]string{
			"5", dead(body(1, n), "failed", `"boom é/x"`, `"*errors.errorString"`, n),
		}))
		r.wantKeys("graveyard")
	})
}

// TestConsumingDeadLetters covers R4 and D1: the dead letters of a queue are a queue like any other, reached by
// its derived name, and its tokens wake whoever consumes it.
func TestConsumingDeadLetters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		seen, handler := watch(nil)
		cfg := r.config(function(func(context.Context, *delivery.Delivery) error { return delivery.DeadLetter(errBoom) }))
		cfg.Queues = append(cfg.Queues, pool.Queue{Name: "orders.dlq", Handler: handler})
		r.push(body(1, 0))
		r.start(cfg)
		d := receive(t, seen, "the dead letter is handled")
		wantEqual(t, "queue", d.Queue, "orders.dlq")
		wantEqual(t, "attempts go on", d.Attempts, 2*first(r.layout))
		wantWords(t, d.Envelope.DeadLetter, `"reason":"failed"`, `"original_queue":"orders"`)
		testredis.Eventually(t, patience, func() bool {
			return r.Client.Exists(t.Context(), r.keys.dead, r.keys.ready).Val() == 0
		}, "nothing is left")
	})
}

// TestLayoutsTogether covers a pool of queues that differ in everything a queue can set.
func TestLayoutsTogether(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		legacy, zset := newRig(t, b, pool.Legacy), newRig(t, b, pool.Zset)
		theirs, mine := legacy.block(), legacy.block()
		cfg := legacy.config(theirs)
		cfg.RetryAfter = 50 * time.Second
		cfg.Queues = []pool.Queue{
			{Name: queue, RetryAfter: 20 * time.Second},
			{Name: queue, Layout: pool.Zset, Handler: mine, Weight: 3},
		}
		legacy.push(body(1, 0))
		zset.push(body(2, 0))
		before := legacy.serverTime().Unix()
		p := legacy.start(cfg)
		one, two := receive(t, theirs.running, "the legacy queue"), receive(t, mine.running, "the zset queue")
		after := legacy.serverTime().Unix()
		wantEqual(t, "handled", []string{one.Meta.ID, two.Meta.ID}, []string{"m-0001", "m-0002"})
		wantEqual(t, "attempts", []int64{one.Attempts, two.Attempts}, []int64{0, 1})
		for _, row := range []struct {
			r     *rig
			lease int64
		}{{legacy, 20}, {zset, 50}} {
			for _, score := range row.r.scores() {
				if at := int64(score); at < before+row.lease || at > after+row.lease {
					t.Errorf("%v: a lease of %d s, want %d", row.r.layout, at-before, row.lease)
				}
			}
		}
		theirs.letGo()
		mine.letGo()
		testredis.Eventually(t, patience, func() bool {
			s := p.Stats()
			return s.Queues[0].Acked == 1 && s.Queues[1].Acked == 1 && s.Held == 0
		}, "each queue has its counts")
		legacy.wantKeys()
	})
}

// scores are the expiries of the queue's leases.
func (r *rig) scores() []float64 {
	r.t.Helper()
	scored, err := r.Client.ZRangeWithScores(r.t.Context(), r.keys.leases, 0, -1).Result()
	r.must(err)
	var all []float64
	for _, z := range scored {
		all = append(all, z.Score)
	}
	return all
}

// TestRetryAfterDisabled covers L5 and Z2: leases that never run out, while delayed messages still come.
func TestRetryAfterDisabled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.RetryAfterDisabled = true
		r.push(body(1, 0))
		want := 1
		if r.layout == pool.Zset {
			r.due(float64(r.serverTime().Unix()), body(2, 0))
			want = 2
		}
		p := r.start(cfg)
		collect(t, b.running, want, "the handlers run")
		scores := r.scores()
		wantEqual(t, "leases", len(scores), want)
		for _, score := range scores {
			if !math.IsInf(score, 1) {
				t.Errorf("a lease that ends at %v", score)
			}
		}
		b.letGo()
		p.settled(want)
		r.awaitSettled()
	})
}

// TestLeaseOfOneQueue covers that a queue may have a lease where the others have none.
func TestLeaseOfOneQueue(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		seen, handler := watch(func(*delivery.Delivery) error { return errBoom })
		cfg := r.config(handler)
		cfg.RetryAfterDisabled = true
		cfg.Queues = []pool.Queue{{Name: "others"}, {Name: queue, RetryAfter: 2 * time.Second}}
		r.push(body(1, 0))
		r.start(cfg)
		collect(t, seen, 2, "it comes back")
	})
}
