package faulttest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// waysToLose are the ways in which a client misses a reply: it is told, or finds out by its own timeout.
var waysToLose = map[string][]faultproxy.SwallowOption{"reset": nil, "silence": {faultproxy.KeepOpen()}}

// warm makes the server know the scripts of a pool, so that the first reply of another one is not NOSCRIPT.
func (r *rig) warm() {
	r.t.Helper()
	other := r.beside("warm")
	other.publish(1)
	p := other.start(pool.Config{})
	p.until("the scripts are known", func(c pool.QueueStats) bool { return c.Acked == 1 })
	p.stopClean()
}

// TestB03LostReserveReplyIsRecalled loses the reply of the reserve that took everything. In the legacy layout the
// messages are found by their tokens and handled at once; in the other one their lease brings them back.
func TestB03LostReserveReplyIsRecalled(t *testing.T) {
	for how, opts := range waysToLose {
		t.Run(how, func(t *testing.T) {
			eachLayout(t, func(t *testing.T, layout pool.Layout) {
				const n = 100
				r := newSharedRig(t, layout)
				r.warm()
				r.publish(n)
				proxy := faultproxy.Start(t, r.server.Addr())
				lost := proxy.SwallowNext(r.keys.Paused, opts...) // a key of reserves alone
				lease := map[pool.Layout]time.Duration{pool.Legacy: time.Minute, pool.Zset: 2 * time.Second}[layout]
				p := r.start(pool.Config{
					Client:     r.client("redis://" + proxy.Addr() + "?read_timeout=500ms"),
					RetryAfter: lease, Concurrency: 8, Prefetch: n,
				})
				testredis.Await(t, lost.Done(), patience, "a lost reply")
				begun := time.Now()
				if s := r.snapshot(); len(s.flight) < n/2 && p.counts().Started == 0 {
					t.Fatalf("the lost call took %d messages: the test shows nothing", len(s.flight))
				}
				r.awaitAllDone()
				took := time.Since(begun)
				r.awaitEmpty()
				r.onceEach(t)
				p.until("all are acked", func(c pool.QueueStats) bool { return c.Acked == n })
				p.stopClean()
				c := p.counts()
				if c.Late+c.Lost+c.Failed != 0 {
					t.Errorf("nothing late, lost or failed expected: %+v", c)
				}
				if found := p.logs.count("found the messages"); layout == pool.Legacy && (found != 1 || c.Moved != 0 || took > 3*time.Second) {
					t.Errorf("handled after %v, with %d moved, and found %d times; want at once, none, once", took, c.Moved, found)
				} else if layout == pool.Zset && (found != 0 || c.Moved == 0) {
					t.Errorf("%d recovered by their lease, and found %d times", c.Moved, found)
				}
			})
		})
	}
}

// TestB03LostReserveReplyAtStop stops the pool while a reserve is away whose reply is lost: its messages are back
// in ready at once, in their order, and not after a minute.
func TestB03LostReserveReplyAtStop(t *testing.T) {
	t.Parallel()
	const n = 50
	r := newSharedRig(t, pool.Legacy)
	r.warm()
	bodies := r.publish(n)
	proxy := faultproxy.Start(t, r.server.Addr())
	lost := proxy.SwallowNext(r.keys.Paused, faultproxy.KeepOpen())
	p := r.start(pool.Config{
		Client: r.client("redis://" + proxy.Addr() + "?read_timeout=1s"), RetryAfter: time.Minute, Concurrency: 1, Prefetch: n,
	})
	testredis.Await(t, lost.Done(), patience, "a lost reply")
	took, err := p.stop()
	if err != nil || took > 3*time.Second {
		t.Errorf("the stop took %v: %v", took, err)
	}
	s := r.check()
	if diff := cmp.Diff(bodies, s.ready); diff != "" || len(s.flight) != 0 {
		t.Errorf("%d in flight; ready (-want +got):\n%.2000s", len(s.flight), diff)
	}
}

// TestB03NothingIsLookedUpWithoutALoss counts what a pool sends: no look-up, while all goes well or Redis is known
// to have refused.
func TestB03NothingIsLookedUpWithoutALoss(t *testing.T) {
	t.Parallel()
	r := newSharedRig(t, pool.Legacy)
	proxy := faultproxy.Start(t, r.server.Addr())
	p := r.start(pool.Config{Client: r.client("redis://" + proxy.Addr()), Concurrency: 4})
	for range 5 {
		r.publish(50)
		r.awaitAllDone()
	}
	p.stopClean()
	for _, c := range proxy.Commands() {
		// A look-up is the one script that has this key alone and is no renewal, which names members, but for the
		// question for permissions.
		if strings.Contains(c.String(), " 1 "+r.leaseKey()+" ") && !strings.Contains(c.String(), `"seq":`) && !strings.Contains(c.String(), "local refused") {
			t.Errorf("sent without need: %.200s", c)
		}
	}
}

// TestB03LostReturnReply loses the reply of an uncharged return, the one settlement that is not sent again: the text
// it wrote can have been reserved anew (Z4). It has taken effect once.
func TestB03LostReturnReply(t *testing.T) {
	t.Parallel()
	const unknown = "urn:babel:fault:unknown"
	r := newSharedRig(t, pool.Zset)
	proxy := faultproxy.Start(t, r.server.Addr())
	p := r.start(pool.Config{
		Client: r.client("redis://" + proxy.Addr()), RetryAfter: longLease,
		UnknownURN: pool.UnknownRelease, UnknownURNDelay: time.Hour, UnknownURNMaxAge: 24 * time.Hour,
	})
	r.publishURN(unknown, 1)
	p.until("the script is known", func(c pool.QueueStats) bool { return c.Returned == 1 })
	lost := proxy.SwallowNext(`"seq":`)
	bodies := r.publishURN(unknown, 1)
	testredis.Await(t, lost.Done(), patience, "a lost reply")
	p.until("it is left to its lease", func(c pool.QueueStats) bool { return c.Left == 1 })
	p.stopClean()
	s := r.check()
	if len(s.delayed) != 2 || len(s.flight)+len(s.ready) != 0 || !slices.Contains(s.delayed, bodies[0]) {
		t.Errorf("%d delayed, %d in flight, %d ready; want 2, the second as it was published", len(s.delayed), len(s.flight), len(s.ready))
	}
	if n := proxy.Count(`"seq":1}`); n != 1 {
		t.Errorf("sent %d times, want once", n)
	}
}

// TestB03LostRenewalReply loses the reply of a renewal: the next one finds the lease as it is, and the handler runs on.
func TestB03LostRenewalReply(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		r := newSharedRig(t, layout)
		proxy := faultproxy.Start(t, r.server.Addr())
		gate := make(chan struct{})
		p := r.start(pool.Config{
			Client: r.client("redis://" + proxy.Addr() + "?read_timeout=500ms"),
			Handler: r.handler(func(ctx context.Context, _ int, _ *delivery.Delivery) error {
				select {
				case <-gate:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}),
		})
		r.publish(1)
		p.until("the script is known", func(c pool.QueueStats) bool { return c.Renewed > 0 })
		lost := proxy.SwallowNext(" 1 " + r.leaseKey() + "  2 ") // no clock, a lease of 2 s
		testredis.Await(t, lost.Done(), patience, "a lost reply")
		renewed := p.counts().Renewed
		p.until("renewals go on", func(c pool.QueueStats) bool { return c.Renewed > renewed+3 })
		close(gate)
		p.until("it is settled", func(c pool.QueueStats) bool { return c.Acked+c.Late+c.Left+c.Failed > 0 })
		p.stopClean()
		if c := p.counts(); c.Started != 1 || c.Acked != 1 || c.Lost+c.Moved != 0 {
			t.Errorf("one start and one ack expected: %+v", c)
		}
		r.awaitEmpty()
	})
}
