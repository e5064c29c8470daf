package faulttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// outage is a way in which Redis is away for a time; strike returns when it is back.
type outage struct {
	name   string
	length time.Duration // 0: over at once
	strike func(t *testing.T, r *rig, h *tries, length time.Duration)
	// late: calls sent before the outage are carried out after it. A sweep among them gives away every lease
	// that has run out meanwhile, so only a longer lease is sure to be kept.
	late bool
}

// lease is one that a running handler must keep: where it can be, shorter than the outage.
func (o outage) lease() time.Duration {
	if o.late {
		return o.length + 4*time.Second
	}
	return 3 * time.Second
}

// outages are those of the case, in the lengths of the form that runs.
func outages() []outage {
	var all []outage
	for _, length := range scaled(
		[]time.Duration{200 * time.Millisecond, 3 * time.Second},
		[]time.Duration{200 * time.Millisecond, 3 * time.Second, 30 * time.Second},
	) {
		all = append(all,
			outage{fmt.Sprintf("killed for %v", length), length, func(t *testing.T, r *rig, _ *tries, length time.Duration) {
				must(t, r.server.Kill())
				pause(t, length)
				must(t, r.server.Restart(t.Context()))
			}, false},
			outage{fmt.Sprintf("frozen for %v", length), length, func(t *testing.T, r *rig, _ *tries, length time.Duration) {
				must(t, r.server.Freeze())
				pause(t, length)
				must(t, r.server.Thaw())
			}, true},
		)
	}
	return append(all,
		outage{"connections closed", 0, func(t *testing.T, r *rig, _ *tries, _ time.Duration) {
			must(t, r.control.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
		}, false},
		outage{"blocked calls cut short", 0, func(t *testing.T, r *rig, _ *tries, _ time.Duration) {
			cut := 0
			testredis.Eventually(t, patience, func() bool {
				cut += r.unblockAll()
				return cut >= 10
			}, "ten blocked calls cut short")
		}, false},
		outage{"asleep", scaled(time.Second, 5*time.Second), func(t *testing.T, r *rig, _ *tries, length time.Duration) {
			sleeper := testredis.Client(t, r.server.Addr())
			_ = sleeper.Do(t.Context(), "DEBUG", "SLEEP", length.Seconds()).Err() // its own reply may come too late
			testredis.Eventually(t, patience, func() bool { return r.control.Ping(t.Context()).Err() == nil }, "an answer")
		}, true},
		outage{"without a name", scaled(3*time.Second, 10*time.Second), func(t *testing.T, r *rig, h *tries, length time.Duration) {
			h.nameless.Store(true)
			must(t, r.control.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
			pause(t, length)
			h.nameless.Store(false)
		}, false},
	)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unblockAll makes all blocked calls fail and returns how many.
func (r *rig) unblockAll() int {
	r.t.Helper()
	list, err := r.control.ClientList(r.t.Context()).Result()
	must(r.t, err)
	n := 0
	for line := range strings.Lines(list) {
		var id int64
		if _, err := fmt.Sscanf(line, "id=%d ", &id); err != nil || !strings.Contains(line, "flags=b ") {
			continue
		}
		n += int(r.control.ClientUnblockWithError(r.t.Context(), id).Val())
	}
	return n
}

// load publishes at a steady rate until ctx ends, through faults and all, and then closes the channel.
func (r *rig) load(ctx context.Context, client redis.UniversalClient, every time.Duration) <-chan struct{} {
	producer := *r
	producer.control = client
	producer.setKeys()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			seq, body := r.body(r.t, r.queue, testURN)
			switch err := producer.store.Publish(context.WithoutCancel(ctx), []string{body}); {
			case err == nil:
				r.stored(seq)
			case !errors.Is(err, flow.ErrAmbiguous):
				r.unstored(seq)
			}
		}
	}()
	return ended
}

// TestB15ConsumesAgainAfterAnOutage lets Redis go away in every way under a steady load, with an allowance for
// a machine that runs other tests beside.
func TestB15ConsumesAgainAfterAnOutage(t *testing.T) {
	for _, o := range outages() {
		t.Run(o.name, func(t *testing.T) {
			eachLayout(t, func(t *testing.T, layout pool.Layout) { surviveOutage(t, layout, o, 4*time.Second) })
		})
	}
}

// surviveOutage runs one outage: the pool consumes again within the limit, tries calmly meanwhile, grows by no
// goroutine, logs each change once, and keeps the lease of a handler that runs through it all.
func surviveOutage(t *testing.T, layout pool.Layout, o outage, limit time.Duration) {
	r := newRig(t, layout, redisproc.Config{AppendOnly: true, AppendFsync: "always"})
	h := &tries{}
	client := r.client(r.server.URL())
	client.AddHook(h)
	slow, release := r.next, make(chan struct{})
	r.publish(1)
	var probe atomic.Int64 // the message whose start shows that the pool consumes again
	probe.Store(-1)
	seen := make(chan time.Time, 1)
	p := r.start(pool.Config{
		Client: client, Concurrency: 8, Prefetch: 32, RetryAfter: o.lease(),
		Handler: r.handler(func(ctx context.Context, seq int, _ *delivery.Delivery) error {
			switch int64(seq) {
			case int64(slow):
				<-release
			case probe.Load():
				select {
				case seen <- time.Now():
				default:
				}
			}
			return nil
		}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	loaded := r.load(ctx, r.client(r.server.URL()+"?read_timeout=300ms&dial_timeout=300ms"), 5*time.Millisecond)
	defer func() { cancel(); <-loaded }()
	p.until("the load flows", func(c pool.QueueStats) bool { return c.Acked > 100 && c.Renewed > 0 })
	calm, conns := p.goroutines(), client.PoolStats().TotalConns

	gone := time.Now()
	o.strike(t, r, h, o.length)
	back := time.Now()
	crowd := p.goroutines()
	renewed := p.counts().Renewed
	seq, body := r.body(t, r.queue, testURN)
	probe.Store(int64(seq))
	testredis.Eventually(t, patience, func() bool {
		err := r.store.Publish(t.Context(), []string{body})
		if errors.Is(err, flow.ErrAmbiguous) {
			t.Fatalf("publishing the probe: %v", err)
		}
		return err == nil
	}, "the probe is published")
	r.stored(seq)
	select {
	case at := <-seen:
		t.Logf("consumed again after %v", at.Sub(back).Round(time.Millisecond))
		if took := at.Sub(back); took > limit {
			t.Errorf("consumed again after %v, want at most %v", took, limit)
		}
	case <-time.After(patience):
		t.Fatal("does not consume again")
	}
	if o.length >= time.Second {
		for what, n := range h.between(gone.Add(50*time.Millisecond), back) {
			loops := 1
			if what == "dial" {
				loops = 4 // reserver, acker, renewer, sweeper
			}
			if rate := float64(n) / o.length.Seconds(); rate > 5*float64(loops) {
				t.Errorf("%s was tried %.1f times a second while Redis was away (%d in %v)", what, rate, n, o.length)
			}
		}
	}
	p.until("leases are renewed again", func(c pool.QueueStats) bool { return c.Renewed > renewed })
	cancel()
	<-loaded
	close(release)
	r.awaitAllDone()
	r.awaitEmpty()
	if n := r.started(slow); n != 1 {
		t.Errorf("the handler that ran through the outage was started %d times", n)
	}
	if crowd > calm+8 {
		t.Errorf("%d goroutines while Redis was away, %d before", crowd, calm)
	}
	testredis.Eventually(t, 5*time.Second, func() bool {
		return p.goroutines() <= calm+3 && client.PoolStats().TotalConns <= conns+4
	}, "as many goroutines and connections as before, %d and %d", calm, conns)
	for _, loop := range []string{"reserving", "settling", "renewing leases", "sweeping"} {
		down, up := p.logs.count(loop+" is held up"), p.logs.count(loop+" works again")
		if down > 1 && o.length > 0 || down != up {
			t.Errorf("%s: %d lines for down and %d for up", loop, down, up)
		}
	}
	if c := p.counts(); c.Failed != 0 || c.DeadLettered != 0 {
		t.Errorf("messages were charged for the outage: %+v", c)
	}
	p.stopClean()
}

// TestB15NoNameAtStart starts a pool whose server's name cannot be looked up: it says why, once, waits, and consumes
// within two seconds of the name being known.
func TestB15NoNameAtStart(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		r := newSharedRig(t, layout)
		r.publish(10)
		h, client := &tries{}, r.client(r.server.URL())
		client.AddHook(h)
		h.nameless.Store(true)
		p := r.start(pool.Config{Client: client})
		begun := time.Now()
		testredis.Eventually(t, patience, func() bool { return p.logs.count("reserving is held up") == 1 }, "it says that it is held up")
		pause(t, 2*time.Second)
		h.calm(t, begun, time.Now())
		h.nameless.Store(false)
		back := time.Now()
		r.awaitAllDone()
		if took := time.Since(back); took > 2*time.Second {
			t.Errorf("consumed %v after the name was known, want at most 2s", took)
		}
		r.awaitEmpty()
		p.logs.inPairs(t)
		p.stopClean()
		if n := p.logs.count("redis is not available yet"); n != 1 || p.logs.count("no such host") == 0 {
			t.Errorf("%d lines at start, want one, and the reason", n)
		}
	})
}
