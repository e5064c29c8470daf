package faulttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// longLease is a lease that no test outlasts: no renewal and no redelivery gets in the way.
const longLease = 10 * time.Minute

// TestB13OneAckOfABatchIsLate takes one lease away behind the pool's back: its ack is late, all others count.
func TestB13OneAckOfABatchIsLate(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const n = 100
		r := newSharedRig(t, layout)
		r.publish(n)
		gate := make(chan struct{})
		p := r.start(pool.Config{
			Concurrency: n, Prefetch: n, RetryAfter: longLease,
			Handler: r.handler(func(context.Context, int, *delivery.Delivery) error { <-gate; return nil }),
		})
		p.until("all handlers run", func(c pool.QueueStats) bool { return c.Started == n })
		members := r.control.ZRange(t.Context(), r.leaseKey(), n/2, n/2).Val()
		if removed, err := r.control.ZRem(t.Context(), r.leaseKey(), members[0]).Result(); err != nil || removed != 1 {
			t.Fatalf("removing a lease: %d, %v", removed, err)
		}
		close(gate)
		p.until("everything is settled", func(c pool.QueueStats) bool { return c.Acked+c.Late == n })
		if c := p.counts(); c.Acked != n-1 || c.Late != 1 {
			t.Errorf("%d acked and %d late, want %d and 1", c.Acked, c.Late, n-1)
		}
		// Without its deadline the value in processing is an orphan (L7): the ack must not touch it.
		s, want := r.snapshot(), 0
		if layout == pool.Legacy {
			want = 1
		}
		if len(s.flight) != want || len(s.leases) != 0 || len(s.ready) != 0 {
			t.Errorf("%d in flight, %d leases, %d ready; want %d, 0, 0", len(s.flight), len(s.leases), len(s.ready), want)
		}
		p.stopClean()
	})
}

// TestB13LostSettleReply loses the reply to a settlement that the server has carried out. It is sent again and
// has no second effect.
func TestB13LostSettleReply(t *testing.T) {
	none := 0.0
	for name, tc := range map[string]struct {
		cfg     pool.Config
		verdict func(layout pool.Layout, d *delivery.Delivery) error
		dead    bool
	}{
		"ack": {verdict: func(pool.Layout, *delivery.Delivery) error { return nil }},
		"dead-letter": {dead: true, verdict: func(pool.Layout, *delivery.Delivery) error {
			return delivery.DeadLetter(errors.New("unwanted"))
		}},
		"retry": {
			cfg: pool.Config{MaxAttempts: 5, LegacyRetry: pool.Requeue, FailureDelay: &none},
			verdict: func(layout pool.Layout, d *delivery.Delivery) error {
				if d.Attempts == firstAttempts(layout) {
					return errors.New("once more")
				}
				return nil
			},
		},
	} {
		for how, opts := range map[string][]faultproxy.SwallowOption{"reset": nil, "silence": {faultproxy.KeepOpen()}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				eachLayout(t, func(t *testing.T, layout pool.Layout) {
					const n = 20
					r := newSharedRig(t, layout)
					proxy := faultproxy.Start(t, r.server.Addr())
					gate := make(chan struct{})
					cfg := tc.cfg
					cfg.Client = r.client("redis://" + proxy.Addr() + "?read_timeout=500ms")
					cfg.RetryAfter, cfg.Concurrency, cfg.Prefetch = longLease, n, n
					cfg.Handler = r.handler(func(_ context.Context, _ int, d *delivery.Delivery) error {
						<-gate
						return tc.verdict(layout, d)
					})
					p := r.start(cfg)
					// An ack goes through first, so that the server knows the script by its hash and the lost reply
					// is not a NOSCRIPT.
					r.publish(1)
					gate <- struct{}{}
					p.until("the first message is settled", func(c pool.QueueStats) bool { return c.Acked+c.DeadLettered+c.Requeued+c.Released == 1 })
					r.publish(n)
					p.until("the handlers run", func(c pool.QueueStats) bool { return c.Started >= n })
					lost := proxy.SwallowNext(`"seq":`, opts...) // only settlements carry bodies to the server
					close(gate)
					testredis.Await(t, lost.Done(), patience, "a lost reply")

					want := 0
					if tc.dead {
						want = n + 1
					}
					testredis.Eventually(t, patience, func() bool {
						c := p.counts()
						return p.Stats().Held == 0 && len(r.snapshot().ready) == 0 && c.Started == c.Acked+c.Late+c.DeadLettered+c.Requeued+c.Released
					}, "everything is settled")
					s := r.check()
					if len(s.dead) != want || len(s.flight)+len(s.delayed) != 0 {
						t.Errorf("%d dead letters, %d in flight, %d delayed; want %d, 0, 0", len(s.dead), len(s.flight), len(s.delayed), want)
					}
					if !tc.dead && !r.allDone() {
						t.Error("not all messages were handled")
					}
					if c := p.counts(); c.Late == 0 || c.Late > n {
						t.Errorf("the repeated settlements should have been late: %+v", c)
					}
					p.stopClean()
				})
			})
		}
	}
}

// TestB13LostHandBackReply loses the reply to a hand back: the messages are back once, in their order.
func TestB13LostHandBackReply(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const n = 20
		r := newSharedRig(t, layout)
		bodies := r.publish(n)
		proxy := faultproxy.Start(t, r.server.Addr())
		gate := make(chan struct{})
		p := r.start(pool.Config{
			Client: r.client("redis://" + proxy.Addr()), Concurrency: 1, Prefetch: n, RetryAfter: longLease,
			Handler: r.handler(func(context.Context, int, *delivery.Delivery) error { <-gate; return nil }),
		})
		p.until("the buffer is full", func(c pool.QueueStats) bool { return c.Reserved == n && c.Started == 1 })
		// Load the script first: an idle pool hands back nothing, so another one of its kind does it.
		warm := r.beside("warm")
		warm.publish(2)
		w := warm.start(pool.Config{Concurrency: 1, Prefetch: 2, RetryAfter: longLease, Handler: warm.sleeping(100 * time.Millisecond)})
		w.until("one waits in the buffer", func(c pool.QueueStats) bool { return c.Reserved == 2 })
		w.stopClean()

		lost := proxy.SwallowNext(`"seq":`)
		p.cancel()
		testredis.Await(t, lost.Done(), patience, "a lost reply")
		close(gate)
		p.stopClean()
		s := r.check()
		if len(s.ready) != n-1 || len(s.flight) != 0 {
			t.Fatalf("%d ready and %d in flight, want %d and 0", len(s.ready), len(s.flight), n-1)
		}
		for i, text := range s.ready {
			if text != bodies[i+1] {
				t.Fatalf("ready[%d] is %q, want %q as it was published", i, text, bodies[i+1])
			}
		}
	})
}

// TestB13AcksWaitForRedis kills Redis under running handlers for longer than their lease. Their acks wait,
// leases are renewed as soon as Redis is back and before anything is swept, and no handler runs twice.
func TestB13AcksWaitForRedis(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const n, workers = 24, 8
		r := newRig(t, layout, redisproc.Config{AppendOnly: true, AppendFsync: "always"})
		r.publish(n)
		gate := make(chan struct{})
		p := r.start(pool.Config{
			Concurrency: workers, Prefetch: n,
			Handler: r.handler(func(context.Context, int, *delivery.Delivery) error { <-gate; return nil }),
		})
		p.until("the buffer is full", func(c pool.QueueStats) bool { return c.Reserved == n && c.Started == workers })
		if err := r.server.Kill(); err != nil {
			t.Fatal(err)
		}
		for range workers / 2 { // half of them end while Redis is away; others start in their place
			gate <- struct{}{}
		}
		p.until("more handlers run on leases that are still held", func(c pool.QueueStats) bool { return c.Started == workers*3/2 })
		pause(t, scaled(2500*time.Millisecond, 5*time.Second))
		if c := p.counts(); c.Acked != 0 || c.Late != 0 || p.Stats().Held != n {
			t.Errorf("settled without Redis: %+v", c)
		}
		if err := r.server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(gate)
		r.awaitAllDone()
		r.awaitEmpty()
		r.onceEach(t)
		p.until("all are acked", func(c pool.QueueStats) bool { return c.Acked+c.Late == n })
		if c := p.counts(); c.Acked != n || c.Moved != 0 || c.Lost != 0 {
			t.Errorf("%d acks, nothing moved or lost expected: %+v", n, c)
		}
		p.stopClean()
		if down, up := p.logs.count("settling is held up"), p.logs.count("settling works again"); down != 1 || up != 1 {
			t.Errorf("settling: %d lines for down, %d for up; want one each", down, up)
		}
	})
}

// TestB13RedisIsDownForGood kills Redis under load. Intake stops by itself, nothing grows, and the stop ends
// in time with an error that counts what was not settled.
func TestB13RedisIsDownForGood(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const n, prefetch = 500, 32
		const drain, hard = 2 * time.Second, time.Second
		r := newRig(t, layout, redisproc.Config{AppendOnly: true, AppendFsync: "always"})
		r.publish(n)
		enough := make(chan struct{})
		var once sync.Once
		p := r.start(pool.Config{
			Concurrency: 8, Prefetch: prefetch, DrainTimeout: drain, HardStopTimeout: hard, RetryAfter: 30 * time.Second,
			Handler: r.handler(func(ctx context.Context, _ int, _ *delivery.Delivery) error {
				if _, done, _ := r.totals(); done > 100 {
					once.Do(func() { close(enough) })
				}
				return retry.Sleep(ctx, 5*time.Millisecond)
			}),
		})
		testredis.Await(t, enough, patience, "a good number of messages")
		if err := r.server.Kill(); err != nil {
			t.Fatal(err)
		}
		running := p.goroutines()
		p.until("the buffer is used up", func(c pool.QueueStats) bool { return c.Started == c.Reserved })
		started, unsettled := p.counts().Started, p.counts().Started-p.counts().Acked
		if held := p.Stats().Held; held > prefetch {
			t.Errorf("%d messages held, Prefetch is %d", held, prefetch)
		}
		pause(t, scaled(time.Second, 10*time.Second))
		if c := p.counts(); c.Started != started {
			t.Errorf("handlers start without Redis: %d, then %d", started, c.Started)
		}
		if now := p.goroutines(); now > running+5 {
			t.Errorf("%d goroutines, %d before", now, running)
		}
		took, err := p.stop()
		want := fmt.Sprintf("%d settlements not carried out", unsettled)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run: %v; want an error that says %q", err, want)
		}
		if took > drain+hard+500*time.Millisecond {
			t.Errorf("the stop took %v with %v to drain and %v after it", took, drain, hard)
		}
		if err := r.server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.check()
	})
}

// TestB13EachQueueCountsWhatItCouldNotSettle stops a pool of two queues without Redis: the error counts for
// both.
func TestB13EachQueueCountsWhatItCouldNotSettle(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		r := newRig(t, layout, redisproc.Config{})
		other := r.beside("other")
		r.publish(3)
		other.publish(2)
		gate := make(chan struct{})
		held := delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { <-gate; return nil })
		p := r.start(pool.Config{
			Concurrency: 8, Handler: held, HardStopTimeout: 500 * time.Millisecond, RetryAfter: longLease,
			Queues: []pool.Queue{{Name: r.queue}, {Name: other.queue}},
		})
		testredis.Eventually(t, patience, func() bool {
			s := p.Stats()
			return len(s.Queues) == 2 && s.Queues[0].Started == 3 && s.Queues[1].Started == 2
		}, "all handlers run")
		must(t, r.server.Kill())
		close(gate)
		_, err := p.stop()
		if err == nil {
			t.Fatal("the stop was clean without Redis")
		}
		for _, want := range []string{`queue "orders": 3 settlements`, `queue "other": 2 settlements`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Run: %v; want an error that says %s", err, want)
			}
		}
	})
}
