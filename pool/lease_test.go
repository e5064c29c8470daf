package pool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestHandlerTimeout covers that a handler sees its time limit, learns why it is cancelled, and has failed.
func TestHandlerTimeout(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		causes := make(chan error, 2)
		cfg := r.config(function(func(ctx context.Context, d *delivery.Delivery) error {
			at, ok := ctx.Deadline()
			if left := time.Until(at); !ok || left > 300*time.Millisecond {
				t.Errorf("a deadline: %v, in %v", ok, left)
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}))
		cfg.HandlerTimeout, cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = 300*time.Millisecond, 1, pool.Requeue, ptr(0.0)
		r.push(body(1, 0))
		p := r.start(cfg)
		if cause := receive(t, causes, "it is cancelled"); !errors.Is(cause, pool.ErrHandlerTimeout) {
			t.Errorf("the cause is %v", cause)
		}
		s := p.settled(1)
		wantEqual(t, "failed, dead", []int64{s.Failed, s.DeadLettered}, []int64{1, 1})
		n := first(r.layout)
		r.wantRecords(dead(body(1, n), "failed", `"context deadline exceeded"`, `"context.deadlineExceededError"`, n))
	})
}

// TestHandlerTimeoutIgnored covers that a handler which succeeds after its time is acked: its work is done.
func TestHandlerTimeoutIgnored(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		cfg := r.config(function(func(ctx context.Context, _ *delivery.Delivery) error {
			<-ctx.Done()
			return nil
		}))
		cfg.HandlerTimeout = 50 * time.Millisecond
		r.push(body(1, 0))
		s := r.start(cfg).settled(1)
		wantEqual(t, "acked, failed", []int64{s.Acked, s.Failed}, []int64{1, 0})
		r.awaitSettled()
	})
}

// TestNoHandlerTimeout covers a negative HandlerTimeout.
func TestNoHandlerTimeout(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		limited := make(chan bool, 1)
		cfg := r.config(function(func(ctx context.Context, _ *delivery.Delivery) error {
			_, ok := ctx.Deadline()
			limited <- ok
			return nil
		}))
		cfg.HandlerTimeout = -1
		r.push(body(1, 0))
		r.start(cfg)
		if receive(t, limited, "the delivery") {
			t.Error("there is a deadline")
		}
	})
}

// TestLeaseLost covers that a handler whose lease is gone is told within a renewal, that its success is a
// no-op, and that the new owner's copy stays (L4, Z4, B10).
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		running, causes := make(chan string, 1), make(chan error, 1)
		cfg := r.config(function(func(ctx context.Context, d *delivery.Delivery) error {
			running <- d.Meta.ID
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		}))
		cfg.RetryAfter = 3 * time.Second // renewed each second
		r.push(body(1, 0))
		p := r.start(cfg)
		receive(t, running, "it runs")
		// Another consumer swept it and has reserved it again.
		members, err := r.Client.ZRange(t.Context(), r.keys.leases, 0, -1).Result()
		r.must(err)
		wantEqual(t, "leases", len(members), 1)
		r.must(r.Client.ZRem(t.Context(), r.keys.leases, members[0]).Err())
		theirs := "00000000000000000000000000000000:" + body(1, 0)
		if r.layout == pool.Zset {
			theirs = body(1, 2)
		}
		r.lease(float64(r.serverTime().Unix()+1000), theirs)

		if cause := receive(t, causes, "it is cancelled"); !errors.Is(cause, pool.ErrLeaseLost) {
			t.Errorf("the cause is %v", cause)
		}
		testredis.Eventually(t, patience, func() bool { return p.Stats().Held == 0 && p.stats().Late == 1 }, "the late ack is counted")
		s := p.stats()
		wantEqual(t, "acked, lost", []int64{s.Acked, s.Lost}, []int64{0, 1})
		all := r.state()
		wantEqual(t, "in flight, leases", []int{len(all.InFlight), all.Leases}, []int{1, 1})
		p.stopped()
		wantEqual(t, "after the stop", r.state(), all)
	})
}

// TestLateAck covers B10 without renewal: the handler outlives its lease, the message comes back and is run
// again, and the first run's ack touches nothing.
func TestLateAck(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.RetryAfter, cfg.HandlerTimeout, cfg.DisableLeaseRenewal = 2*time.Second, time.Second, true
		r.push(body(1, 0))
		p := r.start(cfg)
		one := receive(t, b.running, "the first run")
		two := receive(t, b.running, "the second run")
		wantEqual(t, "attempts", two.Attempts-one.Attempts, first(r.layout)) // crash recovery counts in zset only
		b.letGo()
		testredis.Eventually(t, patience, func() bool { return p.stats().Late >= 1 && p.stats().Acked == 1 }, "one is late, one acks")
		r.awaitSettled()
		r.wantDead()
	})
}

// TestRenewal covers that a long handler keeps its message: one start, and a lease that moves (L8, Z10, B11).
func TestRenewal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.RetryAfter = 2 * time.Second
		r.push(body(1, 0))
		p := r.start(cfg)
		receive(t, b.running, "it runs")
		initial := r.scores()[0]
		testredis.Eventually(t, patience, func() bool { return r.scores()[0] >= initial+3 }, "the lease has moved by more than itself")
		b.letGo()
		s := p.settled(1)
		wantEqual(t, "started, acked, late, lost", []int64{s.Started, s.Acked, s.Late, s.Lost}, []int64{1, 1, 0, 0})
		if s.Renewed < 2 {
			t.Errorf("renewed %d times", s.Renewed)
		}
	})
}

// TestOrphans covers L7: a value in flight without a deadline is counted and reported at start, and not touched.
func TestOrphans(t *testing.T) {
	t.Parallel()
	for name, adopt := range map[string]bool{"reported": false, "to be adopted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, pool.Legacy, func(t *testing.T, r *rig) {
				orphans := []string{body(1, 0), body(2, 0), body(1, 0)}
				r.rpush(r.keys.inFlight, orphans...)
				cfg := r.config(function(ackAll))
				cfg.AdoptOrphans, cfg.RetryAfter, cfg.PollInterval = adopt, 2*time.Second, 20*time.Millisecond
				p := r.start(cfg)
				testredis.Eventually(t, patience, func() bool {
					s := p.Stats()
					return len(s.Queues) == 1 && s.Queues[0].Orphans == 3
				}, "they are counted")
				testredis.Eventually(t, patience, func() bool {
					return len(r.logs.matching("WARN messages in flight without a deadline", "queue=orders", "orphans=3")) == 1
				}, "they are reported")
				r.push(body(3, 0))
				p.settled(1)
				p.stopped()
				// Adoption waits for a second look, a whole lease and an audit later.
				all := r.state()
				wantEqual(t, "in flight", all.InFlight, orphans)
				wantEqual(t, "leases", all.Leases, 0)
				wantEqual(t, "adopted", p.stats().Adopted, 0)
			})
		})
	}
}
