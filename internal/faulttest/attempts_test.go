package faulttest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// TestB28WhatIsCharged states the rule for every way in which a delivery can end without success: the attempts
// that the handler sees on the next one.
func TestB28WhatIsCharged(t *testing.T) {
	now := 0.0
	atOnce := pool.Config{MaxAttempts: 5, LegacyRetry: pool.Requeue, FailureDelay: &now} // failures come back soon
	lease := pool.Config{}                                                               // failures are left to their lease
	timed := atOnce
	timed.HandlerTimeout = 100 * time.Millisecond
	stopped := atOnce
	stopped.DrainTimeout = 100 * time.Millisecond
	nobody := pool.Config{Handler: router.NewMux(), UnknownURN: pool.UnknownRelease, UnknownURNDelay: time.Second}
	failing := func(err error) delivery.Handler {
		return delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return err })
	}
	for name, tc := range map[string]struct {
		cfg          pool.Config
		first        func(r *rig, cfg pool.Config) // the delivery that ends without success
		legacy, zset int64                         // attempts of the second one
	}{
		"handler error":                 {atOnce, fails(failing(errors.New("no"))), 1, 2},
		"handler error, left to lease":  {lease, fails(failing(errors.New("no"))), 0, 2},
		"panic":                         {atOnce, fails(crashing(func() { panic("no") })), 1, 2},
		"Goexit":                        {atOnce, fails(crashing(runtime.Goexit)), 1, 2},
		"timeout":                       {timed, fails(patient), 1, 2},
		"RetryAfter":                    {atOnce, fails(failing(delivery.RetryAfter(0, nil))), 1, 2},
		"drain, running":                {stopped, interrupted, 0, 1},
		"drain, in the buffer":          {stopped, buffered, 0, 1},
		"crash":                         {lease, (*rig).crash, 0, 2},
		"unknown URN, UnknownRelease":   {nobody, released, 0, 1},
		"lease lost while it still ran": {lease, outrun, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			eachLayout(t, func(t *testing.T, layout pool.Layout) {
				r := newSharedRig(t, layout)
				r.publish(1)
				cfg := tc.cfg
				tc.first(r, cfg)
				r.check()
				seen := make(chan int64, 1)
				cfg.Handler = r.handler(func(_ context.Context, _ int, d *delivery.Delivery) error {
					seen <- d.Attempts
					return nil
				})
				p := r.start(cfg)
				want := tc.legacy
				if layout == pool.Zset {
					want = tc.zset
				}
				select {
				case got := <-seen:
					if got != want {
						t.Errorf("the next delivery saw attempts %d, want %d", got, want)
					}
				case <-time.After(patience):
					t.Fatal("there was no next delivery")
				}
				r.awaitEmpty()
				p.stopClean()
			})
		})
	}
}

// fails makes a first delivery that ends as a failure. Its pool is stopping by then, so there is no second one.
func fails(h delivery.Handler) func(*rig, pool.Config) {
	return func(r *rig, cfg pool.Config) {
		gate := make(chan struct{})
		cfg.Handler = delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
			<-gate
			return h.Handle(ctx, d)
		})
		p := r.start(cfg)
		p.until("the handler runs", func(c pool.QueueStats) bool { return c.Started == 1 })
		p.cancel()
		close(gate)
		p.stopClean()
		if c := p.counts(); c.Failed != 1 || c.Left+c.Released+c.Requeued != 1 {
			r.t.Errorf("one failed run expected: %+v", c)
		}
	}
}

func crashing(f func()) delivery.Handler {
	return delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { f(); return nil })
}

// patient is a handler that ends with its context.
var patient = delivery.HandlerFunc(func(ctx context.Context, _ *delivery.Delivery) error {
	<-ctx.Done()
	return context.Cause(ctx)
})

// interrupted stops the pool under the running handler.
func interrupted(r *rig, cfg pool.Config) {
	cfg.Handler = patient
	p := r.start(cfg)
	p.until("the handler runs", func(c pool.QueueStats) bool { return c.Started == 1 })
	p.stopClean()
	if c := p.counts(); c.HandedBack != 1 || c.Failed != 0 {
		r.t.Errorf("one message handed back and none failed expected: %+v", c)
	}
}

// buffered stops the pool before the message is started: another one is in front of it.
func buffered(r *rig, cfg pool.Config) {
	body := r.publish(1)[0]
	// The one that blocks goes to the head, and is taken out at the end: the ledger must not wait for it.
	must(r.t, r.control.LRem(r.t.Context(), r.keys.Ready, 1, body).Err())
	must(r.t, r.control.LPush(r.t.Context(), r.keys.Ready, body).Err())
	seq, _ := sequence(body)
	cfg.Handler, cfg.Concurrency, cfg.Prefetch = patient, 1, 2
	p := r.start(cfg)
	p.until("one runs and one waits", func(c pool.QueueStats) bool { return c.Started == 1 && c.Reserved == 2 })
	p.stopClean()
	if c := p.counts(); c.HandedBack != 2 {
		r.t.Errorf("two messages handed back expected: %+v", c)
	}
	must(r.t, r.control.LRem(r.t.Context(), r.keys.Ready, 1, body).Err())
	r.unstored(seq)
}

// crash reserves the message and is never heard of again.
func (r *rig) crash(pool.Config) {
	r.t.Helper()
	store := lua.New(r.layout, lua.Options{Client: r.control, Keys: r.keys, RetryAfter: 2 * time.Second})
	got, err := store.Reserve(r.t.Context(), flow.ReserveRequest{Most: 1, Bytes: 1 << 20, FirstPop: 1, Migration: 1000})
	if err != nil || got.Lease == nil {
		r.t.Fatalf("reserving: %+v, %v", got, err)
	}
}

// released runs a pool that has no handler for the message's URN.
func released(r *rig, cfg pool.Config) {
	p := r.start(cfg)
	p.until("the message is released", func(c pool.QueueStats) bool { return c.UnknownURN == 1 && c.Returned+c.Left == 1 })
	p.stopClean()
}

// outrun runs a handler beyond its lease, with renewal off.
func outrun(r *rig, cfg pool.Config) {
	gate := make(chan struct{})
	cfg.DisableLeaseRenewal, cfg.HandlerTimeout, cfg.Concurrency, cfg.Prefetch = true, time.Second, 1, 1
	cfg.Handler = delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { <-gate; return nil })
	p := r.start(cfg)
	p.until("the handler runs", func(c pool.QueueStats) bool { return c.Started == 1 })
	testredis.Eventually(r.t, patience, func() bool { return len(r.snapshot().ready) == 1 }, "the lease has run out")
	p.cancel()
	close(gate)
	p.stopClean()
	if c := p.counts(); c.Late != 1 {
		r.t.Errorf("one late ack expected: %+v", c)
	}
}

// TestB28DrainsAreFree interrupts the same message by five stops, lets it fail as often as it may, and then
// succeed: it is handled and not dead.
func TestB28DrainsAreFree(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		now := 0.0
		r := newSharedRig(t, layout)
		r.publish(1)
		cfg := pool.Config{MaxAttempts: 3, LegacyRetry: pool.Requeue, FailureDelay: &now, DrainTimeout: 20 * time.Millisecond}
		drain := func(want int64) {
			t.Helper()
			seen := make(chan int64, 1)
			cfg.Handler = delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
				seen <- d.Attempts
				<-ctx.Done()
				return context.Cause(ctx)
			})
			p := r.start(cfg)
			if got := <-seen; got != want {
				t.Errorf("attempts %d, want %d", got, want)
			}
			p.stopClean()
			if s := r.check(); len(s.ready) != 1 || len(s.dead) != 0 {
				t.Fatalf("%d ready and %d dead after a stop, want 1 and 0", len(s.ready), len(s.dead))
			}
		}
		attempts := firstAttempts(layout)
		for range 3 {
			drain(attempts)
		}
		for range 2 { // two real failures, between the stops
			fails(crashing(func() { panic("no") }))(r, cfg)
			attempts++
			drain(attempts)
		}
		cfg.Handler = nil
		p := r.start(cfg)
		r.awaitAllDone()
		r.awaitEmpty()
		p.stopClean()
		if s := r.check(); len(s.dead) != 0 {
			t.Errorf("%d dead letters", len(s.dead))
		}
	})
}
