package faulttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/pool"
)

// TestB24IdlePoolStopsAtOnce stops pools that are blocked on an empty queue. Nothing is taken after it.
func TestB24IdlePoolStopsAtOnce(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		r := newSharedRig(t, layout)
		fastest := time.Minute
		for range 3 {
			p := r.start(pool.Config{})
			r.publish(1)
			p.until("it works", func(c pool.QueueStats) bool { return c.Acked == 1 })
			pause(t, 100*time.Millisecond) // now it is blocked
			took, err := p.stop()
			if err != nil || took >= time.Second {
				t.Errorf("the stop took %v: %v", took, err)
			}
			fastest = min(fastest, took)
		}
		if fastest > 300*time.Millisecond {
			t.Errorf("the fastest of three stops took %v: the blocking call is not cut short", fastest)
		}
		bodies := r.publish(10)
		pause(t, 1200*time.Millisecond) // beyond the longest blocking call
		if s := r.check(); !slices.Equal(s.ready, bodies) || len(s.flight) != 0 {
			t.Errorf("%d ready and %d in flight after the stop, want 10 and 0", len(s.ready), len(s.flight))
		}
	})
}

// TestB24StopWithoutRedis stops idle and busy pools while Redis is dead or silent: within the budget.
func TestB24StopWithoutRedis(t *testing.T) {
	for name, strike := range map[string]func(s *redisproc.Server) error{
		"dead": (*redisproc.Server).Kill, "frozen": (*redisproc.Server).Freeze,
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/busy=%t", name, busy), func(t *testing.T) {
				eachLayout(t, func(t *testing.T, layout pool.Layout) {
					const drain, hard = 4 * time.Second, 2 * time.Second
					r := newRig(t, layout, redisproc.Config{})
					p := r.start(pool.Config{
						Concurrency: 2, Prefetch: 8, DrainTimeout: drain, HardStopTimeout: hard, RetryAfter: 30 * time.Second,
						Handler: r.sleeping(time.Minute),
					})
					if busy {
						r.publish(20)
						p.until("handlers run", func(c pool.QueueStats) bool { return c.Started == 2 && c.Reserved == 8 })
					} else {
						pause(t, 200*time.Millisecond) // now it is blocked
					}
					must(t, strike(r.server))
					pause(t, 300*time.Millisecond) // the loops have noticed, or hang
					took, err := p.stop()
					t.Logf("stopped after %v: %v", took.Round(time.Millisecond), err)
					if took > drain+hard+500*time.Millisecond {
						t.Errorf("the stop took %v", took)
					}
				})
			})
		}
	}
}

// TestB25LastAcksAreFlushed lets handlers finish after the stop has begun: all are acked, none has failed.
func TestB25LastAcksAreFlushed(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const n = 20
		r := newSharedRig(t, layout)
		r.publish(n)
		gate := make(chan struct{})
		var cancelled atomic.Int64
		p := r.start(pool.Config{
			Concurrency: n, DrainTimeout: 10 * time.Second, // generous: what is measured is not this
			Handler: r.handler(func(ctx context.Context, _ int, _ *delivery.Delivery) error {
				select {
				case <-gate:
				case <-ctx.Done():
					cancelled.Add(1)
				}
				return nil
			}),
		})
		p.until("all handlers run", func(c pool.QueueStats) bool { return c.Started == n })
		p.cancel()
		pause(t, 300*time.Millisecond)
		close(gate)
		p.stopClean()
		s := r.check()
		if len(s.flight)+len(s.ready)+len(s.dead) != 0 {
			t.Errorf("left: %d in flight, %d ready, %d dead", len(s.flight), len(s.ready), len(s.dead))
		}
		if c := p.counts(); c.Acked != n || c.Failed != 0 || cancelled.Load() != 0 {
			t.Errorf("%d acks and no failure expected; %d contexts cancelled: %+v", n, cancelled.Load(), c)
		}
	})
}

// TestB26BufferIsHandedBack stops a pool with a deep buffer: what nobody started is at the head of the queue
// again, as it was and in its order, and the next consumer gets it at once.
func TestB26BufferIsHandedBack(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const buffer, workers = 100, 2
		work := scaled(500*time.Millisecond, time.Second)
		r := newSharedRig(t, layout)
		bodies := r.publish(buffer + 50)
		proxy := faultproxy.Start(t, r.server.Addr())
		p := r.start(pool.Config{
			Client: r.client("redis://" + proxy.Addr()), Concurrency: workers, Prefetch: buffer, DrainTimeout: 3 * time.Second,
			RetryAfter: longLease, Handler: r.sleeping(work),
		})
		p.until("the buffer is full", func(c pool.QueueStats) bool { return c.Reserved == buffer && c.Started == workers })
		proxy.ResetCounts()
		took, err := p.stop()
		if err != nil {
			t.Errorf("Run: %v", err)
		}
		if limit := work + 2*time.Second; took > limit {
			t.Errorf("the stop took %v with handlers of %v", took, work)
		}
		s := r.check()
		c := p.counts()
		if c.Started > workers+1 || c.HandedBack < buffer-workers-1 {
			t.Errorf("%d started and %d handed back of %d: %+v", c.Started, c.HandedBack, buffer, c)
		}
		// The oldest were started; everything else is as it was published, attempts and order included.
		if want := bodies[c.Started:]; !slices.Equal(s.ready, want) || len(s.flight) != 0 {
			t.Errorf("%d ready and %d in flight, want the last %d as published", len(s.ready), len(s.flight), len(want))
		}
		if n := proxy.Count(`"seq":`); n > 4 { // the hand back, perhaps twice for its script, and the acks
			t.Errorf("%d calls to settle and hand back", n)
		}
		begun := time.Now()
		next := r.start(pool.Config{Concurrency: workers})
		next.until("the next consumer has started some", func(c pool.QueueStats) bool { return c.Started >= workers })
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the next consumer got its first messages after %v", took)
		}
		r.awaitAllDone()
		r.awaitEmpty()
		r.onceEach(t)
		next.stopClean()
	})
}

// TestB27HandlersThatIgnoreTheirContext stops a pool whose handlers do not return: it ends in time, names
// them, and their late outcome touches nothing.
func TestB27HandlersThatIgnoreTheirContext(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const n = 4
		const drain, hard = 2 * time.Second, time.Second
		r := newSharedRig(t, layout)
		bodies := r.publish(n)
		stuck, returned := make(chan struct{}), make(chan struct{}, n)
		cancelled := make(chan time.Time, n)
		p := r.start(pool.Config{
			Concurrency: n, DrainTimeout: drain, HardStopTimeout: hard,
			Handler: r.handler(func(ctx context.Context, _ int, _ *delivery.Delivery) error {
				defer func() { returned <- struct{}{} }()
				<-ctx.Done()
				cancelled <- time.Now()
				if cause := context.Cause(ctx); !errors.Is(cause, pool.ErrHardStop) {
					t.Errorf("cancelled with %v, want ErrHardStop", cause)
				}
				<-stuck
				return nil
			}),
		})
		p.until("all handlers run", func(c pool.QueueStats) bool { return c.Started == n })
		begun := time.Now()
		took, err := p.stop()
		if took < drain+hard || took > drain+hard+scaled(time.Second, 200*time.Millisecond) {
			t.Errorf("the stop took %v, want %v and little more", took, drain+hard)
		}
		for range n {
			if after := (<-cancelled).Sub(begun); after < drain || after > drain+500*time.Millisecond {
				t.Errorf("a handler was cancelled after %v, want %v", after, drain)
			}
		}
		if !errors.Is(err, pool.ErrAbandoned) {
			t.Fatalf("Run: %v, want ErrAbandoned", err)
		}
		for _, body := range bodies {
			if id := messageID(t, body); !strings.Contains(err.Error(), id) {
				t.Errorf("the error does not name message %s: %v", id, err)
			}
		}
		if s := r.check(); len(s.flight) != n {
			t.Errorf("%d messages in flight after the stop, want %d under their leases", len(s.flight), n)
		}

		gate := make(chan struct{})
		next := r.start(pool.Config{
			Concurrency: n, Handler: r.handler(func(context.Context, int, *delivery.Delivery) error { <-gate; return nil }),
		})
		next.until("the leases have run out and another consumer runs the messages", func(c pool.QueueStats) bool { return c.Started == n })
		close(stuck)
		for range n {
			<-returned
		}
		pause(t, 100*time.Millisecond) // for an ack that must not come
		if s := r.check(); len(s.flight) != n {
			t.Errorf("%d messages in flight after the late returns, want the other consumer's %d", len(s.flight), n)
		}
		if c := p.counts(); c.Acked != 0 || c.Late != n {
			t.Errorf("no ack and %d late outcomes expected: %+v", n, c)
		}
		close(gate)
		r.awaitEmpty()
		next.stopClean()
		if c := next.counts(); c.Acked != n || c.Late != 0 {
			t.Errorf("%d acks expected: %+v", n, c)
		}
	})
}
