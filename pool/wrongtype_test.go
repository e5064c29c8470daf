package pool_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// spoil puts a string where a key of the queue is, as somebody else's program may; the returned function takes
// it away. What the key held is kept aside, so that whatever is missing in the end was lost by the pool.
func (r *rig) spoil(key string) (mend func()) {
	r.t.Helper()
	ctx := r.t.Context()
	aside := key + ":aside"
	kept := r.Client.Exists(ctx, key).Val() == 1
	pipe := r.Client.TxPipeline()
	if kept {
		pipe.Rename(ctx, key, aside)
	}
	pipe.Set(ctx, key, "somebody else's", 0)
	_, err := pipe.Exec(ctx)
	r.must(err)
	return func() {
		r.t.Helper()
		pipe := r.Client.TxPipeline()
		pipe.Del(ctx, key)
		if kept {
			pipe.Rename(ctx, aside, key)
		}
		_, err := pipe.Exec(ctx)
		r.must(err)
	}
}

// spoilable are the keys of a layout that a running pool works on, and whether acks need them.
func spoilable(r *rig) map[string]bool {
	if r.layout == pool.Zset {
		return map[string]bool{
			r.keys.ready: false, r.keys.inFlight: true, r.keys.delayed: false, r.keys.notify: false, r.keys.dead: false, r.keys.deadNotify: false,
		}
	}
	return map[string]bool{r.keys.ready: false, r.keys.inFlight: true, r.keys.leases: true, r.keys.dead: false}
}

// TestWrongType covers B07 on a running pool: a key of another type stops what needs the key and nothing else,
// is told once by each actor, by name, and everything goes on when it is gone. Nothing is lost.
func TestWrongType(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, all *rig) {
		for key, forAcks := range spoilable(all) {
			t.Run(key[len(all.Prefix):], func(t *testing.T) {
				t.Parallel()
				spoilt(t, all.Backend, all.layout, key[len(all.Prefix):], forAcks)
			})
		}
	})
}

func spoilt(t *testing.T, b testredis.Backend, layout pool.Layout, key string, forAcks bool) {
	t.Helper()
	b.Client = testredis.Client(t, b.URL)
	b.Prefix += testredis.Prefix(t)
	r := newRig(t, b, layout)
	held := r.block()
	seen, others := watch(nil)
	cfg := r.config(function(func(ctx context.Context, d *delivery.Delivery) error {
		if strings.HasPrefix(d.Meta.ID, "m-00") { // below 100: reserved before the key is spoilt
			_ = held.Handle(ctx, d)
		}
		switch {
		case d.Meta.ID == "m-0007":
			return delivery.DeadLetter(errBoom)
		case d.Meta.ID == "m-0008" && d.Number == 1 && layout == pool.Zset:
			return delivery.RetryAfter(0, errBoom)
		}
		return nil
	}))
	const n = 10
	released := int64(0) // failed messages that are released, beside the one that is given up
	if layout == pool.Zset {
		released = 1
	}
	cfg.Concurrency, cfg.PollInterval = 2*n, 50*time.Millisecond
	cfg.Queues = append(cfg.Queues, pool.Queue{Name: "others", Handler: others})
	elsewhere := keysOf(layout, r.Prefix, "others")
	r.push(bodies(n)...)
	p := r.start(cfg)
	collect(t, held.running, n, "all run")
	key = r.Prefix + key
	mend := r.spoil(key)
	testredis.Eventually(t, patience, func() bool {
		return len(r.logs.matching("WARN reserving is held up", "queue=orders", "WRONGTYPE", " "+key+" ")) == 1 ||
			layout == pool.Legacy && key == r.keys.dead
	}, "it is told, by name")

	// Another queue goes on, and so do acks that need not the key.
	r.rpush(elsewhere.ready, body(500, 0))
	receive(t, seen, "another queue's message")
	held.letGo()
	if forAcks {
		testredis.Eventually(t, patience, func() bool {
			return len(r.logs.matching("WARN settling is held up", "queue=orders", "WRONGTYPE", " "+key+" ")) == 1
		}, "it is told, by name")
		wantEqual(t, "settled", settlements(p.stats()), 0)
	} else {
		testredis.Eventually(t, patience, func() bool { return p.stats().Acked == n-1-released }, "all others are acked")
		if key == r.keys.dead || key == r.keys.deadNotify {
			testredis.Eventually(t, patience, func() bool { return p.stats().Released == released }, "what failed is released")
		}
	}
	mend()
	r.push(body(100, 0))
	s := p.settled(n + 1 + int(released))
	wantEqual(t, "acked, dead, released, late, lost, missing",
		[]int64{s.Acked, s.DeadLettered, s.Released, s.Late, s.Lost, s.Missing}, []int64{n, 1, released, 0, 0, 0})
	at := first(layout)
	r.awaitSettled()
	r.wantRecords(dead(body(7, at), "failed", `"boom é/x"`, `"*errors.errorString"`, at))
	p.stopped()
	for _, actor := range []string{"reserving", "settling", "sweeping", "renewing leases"} {
		bad := r.logs.matching("WARN "+actor+" is held up", "queue=orders")
		good := r.logs.matching("INFO "+actor+" works again", "queue=orders")
		// A sweep that was held up is not made again while the reserver sweeps.
		if len(bad) > 1 || len(good) != len(bad) && actor != "sweeping" {
			t.Errorf("%s: %q, then %q", actor, bad, good)
		}
	}
	if lines := r.logs.matching("WARN ", "queue=others"); len(lines) > 0 {
		t.Errorf("the other queue: %q", lines)
	}
}

// TestSpoiltDeadLetters covers B07 and B13 for the key that matters only now and then: while dead letters cannot
// be written, other messages of the queue go on, and the trouble is told once, not with each try.
func TestSpoiltDeadLetters(t *testing.T) {
	t.Parallel()
	on(t, pool.Legacy, func(t *testing.T, r *rig) {
		cfg := r.config(function(func(_ context.Context, d *delivery.Delivery) error {
			switch d.Meta.ID {
			case "m-0000":
				return delivery.DeadLetter(errBoom)
			case "m-0001":
				if d.Number == 1 {
					return errBoom
				}
			}
			return nil
		}))
		cfg.RetryAfter, cfg.LegacyRetry, cfg.MaxAttempts = 2*time.Second, pool.Requeue, 5
		mend := r.spoil(r.keys.dead)
		r.push(bodies(2)...)
		p := r.start(cfg)
		p.settled(2) // the requeue, and the ack of what was requeued
		until := time.Now().Add(3500 * time.Millisecond)
		sent := 2
		for ; time.Now().Before(until); sent++ {
			r.push(body(sent, 0))
			testredis.Eventually(t, patience, func() bool { return p.stats().Acked == int64(sent) }, "the next is acked")
		}
		if lines := r.logs.matching("settling"); len(lines) != 1 {
			t.Errorf("told %d times: %q", len(lines), lines[:min(3, len(lines))])
		}
		// Its lease was renewed meanwhile: it was run once.
		mend()
		s := p.settled(sent + 1)
		wantEqual(t, "started, requeued, dead, late", []int64{s.Started, s.Requeued, s.DeadLettered, s.Late}, []int64{int64(sent) + 1, 1, 1, 0})
		r.wantRecords(dead(body(0, 0), "failed", `"boom é/x"`, `"*errors.errorString"`, 0))
		testredis.Eventually(t, patience, func() bool { return len(r.logs.matching("INFO settling works again")) == 1 }, "the recovery is told")
	})
}
