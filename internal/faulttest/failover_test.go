package faulttest

import (
	"context"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// eachGround runs fn for both layouts on each kind of ground.
func eachGround(t *testing.T, fn func(t *testing.T, g *ground)) {
	t.Helper()
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		for name, ground := range grounds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				fn(t, ground(t, layout))
			})
		}
	})
}

// TestFailover lets masters change under load, by order and by the death of the old one. The pool consumes again
// within two seconds of the new one being there, loads its scripts there, and handles every message that a replica
// had when its publisher was answered. What the old master alone had is gone, with either kind of servers.
func TestFailover(t *testing.T) { // R1, R3, B15, B46
	eachGround(t, func(t *testing.T, g *ground) { failOver(t, g, besideOthers) })
}

// besideOthers is how soon a pool must consume again: the case's limit with an allowance for a machine that runs other
// tests beside.
const besideOthers = 4 * time.Second

func failOver(t *testing.T, g *ground, limit time.Duration) {
	t.Helper()
	h, client := &tries{}, g.open()
	client.AddHook(h)
	p := g.start(pool.Config{Client: client, Concurrency: 8, Prefetch: 64, RetryAfter: 5 * time.Second, Handler: g.sleeping(2 * time.Millisecond)})
	ctx, cancel := context.WithCancel(context.Background())
	loaded := g.publishConfirmed(ctx, 2*time.Millisecond)
	defer func() { cancel(); <-loaded }()
	p.until("the load flows", func(c pool.QueueStats) bool { return c.Acked > 100 })
	calm := p.goroutines()

	change := func(how string, strike func() error) {
		begun := time.Now()
		must(t, strike())
		back := time.Now()
		took := g.resumes(g.open(), back)
		t.Logf("%s: a new master after %v, consumed again %v after it", how, back.Sub(begun).Round(time.Millisecond), took.Round(time.Millisecond))
		if took > limit {
			t.Errorf("%s: consumed again %v after the new master was there, want at most %v", how, took, limit)
		}
		h.calm(t, begun, back)
		master, err := g.master(t.Context())
		must(t, err)
		if calls(t, master, "eval") == "0" || calls(t, master, "evalsha") == "0" {
			t.Errorf("%s: no script was loaded on the new master", how)
		}
	}
	for range scaled(1, 20) {
		change("handed over", func() error { return g.handOver(t.Context()) })
		must(t, g.whole(t.Context()))
		change("killed", func() error {
			master, err := g.master(t.Context())
			must(t, err)
			must(t, master.Kill())
			return g.await(t.Context(), master)
		})
		for _, s := range g.servers {
			if s.PID() == 0 {
				must(t, s.Restart(t.Context()))
			}
		}
		must(t, g.whole(t.Context()))
	}
	cancel()
	<-loaded
	g.awaitAllDone()
	g.awaitEmpty()
	testredis.Eventually(t, 5*time.Second, func() bool { return p.goroutines() <= calm+3 }, "as many goroutines as before, %d", calm)
	p.logs.inPairs(t)
	p.stopClean()
	stored, _, starts := g.totals()
	t.Logf("%d messages certain, %d starts", stored, starts)
	if c := p.counts(); c.Failed+c.DeadLettered != 0 {
		t.Errorf("messages were charged for a failover: %+v", c)
	}
}

// TestClusterHandOver has a cluster's replica take over in agreement with its master, which stops writes for it: what
// was acknowledged is all there, and nobody handles a message twice.
func TestClusterHandOver(t *testing.T) { // R1
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		g := newClusterGround(t, layout)
		p := g.start(pool.Config{Client: g.open(), Concurrency: 8, Prefetch: 64, RetryAfter: 15 * time.Second, Handler: g.sleeping(2 * time.Millisecond)})
		ctx, cancel := context.WithCancel(context.Background())
		loaded := g.load(ctx, g.open(), 2*time.Millisecond)
		defer func() { cancel(); <-loaded }()
		for range scaled(3, 30) {
			acked := p.counts().Acked
			p.until("the load flows", func(c pool.QueueStats) bool { return c.Acked > acked+100 })
			must(t, g.handOver(t.Context()))
			if took := g.resumes(g.open(), time.Now()); took > besideOthers {
				t.Errorf("consumed again %v after the new master was there, want at most %v", took, besideOthers)
			}
			must(t, g.whole(t.Context()))
		}
		cancel()
		<-loaded
		g.awaitAllDone()
		g.awaitEmpty()
		p.logs.inPairs(t)
		p.stopClean()
		g.onceEach(t)
	})
}
