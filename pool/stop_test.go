package pool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// wantConserved checks that every reservation came to exactly one end (R1). It holds where no lease was lost.
func wantConserved(t *testing.T, s pool.QueueStats) {
	t.Helper()
	wantEqual(t, fmt.Sprintf("reserved, of %+v", s), settlements(s), s.Reserved)
}

// TestCleanDrain covers B25: what runs when the context ends is finished and acked, nothing else is started,
// Run returns nil.
func TestCleanDrain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 20, 20
		r.push(bodies(20)...)
		p := r.start(cfg)
		collect(t, b.running, 20, "all run")
		p.cancel()
		testredis.Eventually(t, patience, func() bool {
			return len(r.logs.matching("stopping: running handlers finish", "handlers=20")) == 1
		}, "the drain begins")
		r.push(body(99, 0))
		b.letGo()
		p.stopped()
		s := p.stats()
		wantEqual(t, "acked, failed, handed back", []int64{s.Acked, s.Failed, s.HandedBack}, []int64{20, 0, 0})
		wantConserved(t, s)
		wantEqual(t, "held", p.Stats().Held, 0)
		all := r.state()
		wantEqual(t, "ready", all.Ready, []string{body(99, 0)})
		wantEqual(t, "in flight", len(all.InFlight)+all.Leases, 0)
		for _, phase := range []string{"INFO consuming", "stopping: intake ends", "stopping: messages nobody started", "stopping: running handlers finish", "INFO stopped clean=true"} {
			if n := len(r.logs.matching(phase)); n != 1 {
				t.Errorf("%q is logged %d times", phase, n)
			}
		}
	})
}

// TestHandBack covers B26, L9 and Z7: what nobody started goes back to the head of ready, in its order and as
// it was, in front of what came later.
func TestHandBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 2, 100
		all := bodies(150)
		r.push(all[:40]...) // several reservations
		p := r.start(cfg)
		started := collect(t, b.running, 2, "two run")
		r.push(all[40:]...)
		r.await("the buffer is full", func(s state) bool { return len(s.InFlight) == 100 })
		p.cancel()
		// The two messages that run may be any of the first batch: workers keep no order.
		running := map[string]bool{started[0].Body: true, started[1].Body: true}
		var want []string
		for i, text := range all {
			if !running[attemptsIn(body(i, 0), first(r.layout))] {
				want = append(want, text)
			}
		}
		s := r.await("98 are handed back", func(s state) bool { return len(s.Ready) == 148 })
		wantEqual(t, "ready", s.Ready, want)
		wantEqual(t, "in flight", len(s.InFlight), 2)
		if r.layout == pool.Zset && s.Notify > len(s.Ready) {
			t.Errorf("%d tokens for %d messages", s.Notify, len(s.Ready)) // B41
		}
		b.letGo()
		p.stopped()
		counts := p.stats()
		wantEqual(t, "acked, handed back", []int64{counts.Acked, counts.HandedBack}, []int64{2, 98})
		wantConserved(t, counts)

		// Another consumer gets them at once, uncharged.
		seen, handler := watch(nil)
		cfg.Handler = handler
		r.start(cfg)
		for _, d := range collect(t, seen, 148, "another consumer takes them") {
			wantEqual(t, "number", d.Number, 1)
		}
	})
}

// TestHardStop covers what becomes of handlers that are cancelled at stop (B25, B28): an error is no failure,
// the message is handed back uncharged; success is acked; a panic is a failure.
func TestHardStop(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		running := make(chan struct{}, 3)
		causes := make(chan error, 3)
		cfg := r.config(function(func(ctx context.Context, d *delivery.Delivery) error {
			running <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			switch d.Meta.ID {
			case "m-0001":
				return ctx.Err()
			case "m-0002":
				return nil
			}
			panic("boom")
		}))
		cfg.DrainTimeout, cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = 10*time.Millisecond, 1, pool.Requeue, ptr(0.0)
		r.push(body(1, 0), body(2, 0), body(3, 0))
		p := r.start(cfg)
		collect(t, running, 3, "all run")
		p.stopped()
		for _, cause := range collect(t, causes, 3, "all are cancelled") {
			if !errors.Is(cause, pool.ErrHardStop) {
				t.Errorf("the cause is %v", cause)
			}
		}
		all := r.state()
		wantEqual(t, "ready", all.Ready, []string{body(1, 0)})
		wantEqual(t, "in flight", len(all.InFlight)+all.Leases, 0)
		if len(all.Dead) != 1 {
			t.Errorf("dead letters: %q", all.Dead)
		}
		s := p.stats()
		wantEqual(t, "acked, handed back, failed, panics", []int64{s.Acked, s.HandedBack, s.Failed, s.Panics}, []int64{1, 1, 1, 1})
		wantConserved(t, s)
	})
}

// TestAbandoned covers B27: handlers that do not return are named in Run's error and left to their leases, and
// what they say later changes nothing.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.DrainTimeout, cfg.HardStopTimeout = 20*time.Millisecond, 20*time.Millisecond
		r.push(bodies(4)...)
		p := r.start(cfg)
		collect(t, b.running, 4, "all run")
		err := p.stop()
		if !errors.Is(err, pool.ErrAbandoned) {
			t.Fatalf("Run: %v, want ErrAbandoned", err)
		}
		wantWords(t, err.Error(), "4, left to their leases")
		for i := range 4 {
			wantWords(t, err.Error(), fmt.Sprintf(`message "m-%04d" (%q) of queue "orders"`, i, urn))
		}
		all := r.state()
		wantEqual(t, "in flight, leases", []int{len(all.InFlight), all.Leases}, []int{4, 4})
		b.letGo() // four late successes
		testredis.Eventually(t, patience, func() bool { return p.stats().Late == 4 }, "they are late")
		wantEqual(t, "state", r.state(), all)
		wantEqual(t, "acked, lost", []int64{p.stats().Acked, p.stats().Lost}, []int64{0, 4})
	})
}

// TestStopIdle covers B24: an idle pool stops soon, and takes nothing after Run has returned.
func TestStopIdle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		p := r.start(r.config(function(ackAll)))
		r.push(body(1, 0))
		p.settled(1)
		asked := time.Now()
		p.stopped()
		if took := time.Since(asked); took > 5*time.Second {
			t.Errorf("the stop took %v", took)
		}
		r.push(bodies(10)...)
		if s := r.state(); len(s.Ready) != 10 || r.layout == pool.Zset && s.Notify != 10 {
			t.Errorf("taken after the stop: %+v", s)
		}
	})
}

// TestStatsBeforeRun covers that the counters may be read at any time.
func TestStatsBeforeRun(t *testing.T) {
	t.Parallel()
	wantEqual(t, "stats", pool.New(pool.Config{}).Stats(), pool.Stats{})
}

// TestHeld covers that no more than Prefetch is ever held, and that the numbers fit each other while a pool
// works.
func TestHeld(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 4, 10
		r.push(bodies(30)...)
		p := r.start(cfg)
		collect(t, b.running, 4, "four run")
		s := r.await("ten are held", func(s state) bool { return len(s.InFlight) == 10 })
		wantEqual(t, "ready", len(s.Ready), 20)
		wantEqual(t, "held", p.Stats().Held, 10)
		wantEqual(t, "reserved, started", []int64{p.stats().Reserved, p.stats().Started}, []int64{10, 4})
		b.letGo()
		p.settled(30)
		testredis.Eventually(t, patience, func() bool { return p.Stats().Held == 0 }, "nothing is held")
		wantConserved(t, p.stats())
	})
}
