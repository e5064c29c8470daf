package faulttest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestB46ScriptFlush empties the script cache all the time under a load of acks, retries and dead letters:
// nothing is lost and nothing is done twice.
func TestB46ScriptFlush(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		now := 0.0
		r := newRig(t, layout, redisproc.Config{})
		p := r.start(pool.Config{
			MaxAttempts: 5, LegacyRetry: pool.Requeue, FailureDelay: &now, RetryAfter: 3 * time.Second,
			Handler: r.handler(func(_ context.Context, seq int, d *delivery.Delivery) error {
				switch {
				case seq%10 == 0:
					return delivery.DeadLetter(errors.New("unwanted"))
				case seq%10 == 1 && d.Attempts == firstAttempts(layout):
					return errors.New("once more")
				}
				return nil
			}),
		})
		ctx, cancel := context.WithCancel(context.Background())
		loaded := r.load(ctx, testredis.Client(t, r.server.Addr()), time.Millisecond)
		defer func() { cancel(); <-loaded }()
		for range scaled(60, 400) {
			pause(t, 50*time.Millisecond)
			must(t, r.control.ScriptFlush(t.Context()).Err())
		}
		cancel()
		<-loaded
		testredis.Eventually(t, patience, func() bool {
			s := r.snapshot()
			return len(s.ready)+len(s.flight)+len(s.delayed) == 0
		}, "everything is settled")
		p.stopClean()
		s := r.check()
		r.mu.Lock()
		defer r.mu.Unlock()
		dead := 0
		for seq := range r.stems {
			starts, done := 1, 1
			switch seq % 10 {
			case 0:
				dead++
				done = 0
			case 1:
				starts = 2
			}
			if r.starts[seq] != starts || r.done[seq] != done {
				t.Errorf("message %d: %d starts and %d successes, want %d and %d", seq, r.starts[seq], r.done[seq], starts, done)
			}
		}
		if len(s.dead) != dead {
			t.Errorf("%d dead letters, want %d", len(s.dead), dead)
		}
		t.Logf("%d messages, %d of them dead", len(r.stems), dead)
	})
}

// TestB46ScriptsAreLoadedOnce counts how often a script's text goes to the server.
func TestB46ScriptsAreLoadedOnce(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		r := newRig(t, layout, redisproc.Config{})
		proxy := faultproxy.Start(t, r.server.Addr())
		p := r.start(pool.Config{Client: r.client("redis://" + proxy.Addr()), Concurrency: 8, Prefetch: 32})
		for range 20 {
			r.publish(50)
			r.awaitAllDone()
		}
		p.stopClean()
		texts, calls := map[string]int{}, 0
		for _, c := range proxy.Commands() {
			switch c.Name() {
			case "EVAL":
				texts[c.Args[1]]++
			case "EVALSHA":
				calls++
			}
		}
		for text, n := range texts {
			// Two loops may need the same script at the same first moment.
			if n > 2 {
				t.Errorf("a script was sent whole %d times: %.100q", n, text)
			}
			if strings.Contains(text, r.prefix) {
				t.Errorf("a script's text holds a key: %.200q", text)
			}
		}
		if len(texts) == 0 || calls < 10*len(texts) {
			t.Errorf("%d scripts sent whole and %d calls by hash: the test has shown nothing", len(texts), calls)
		}
	})
}

// TestB46FailoverToAReplica kills the server under load and leads the client to its replica, which has never
// seen a script and refuses writes until it is promoted.
func TestB46FailoverToAReplica(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const n = 2000
		r := newRig(t, layout, redisproc.Config{Args: []string{"--repl-diskless-sync-delay", "0"}})
		host, port, _ := strings.Cut(r.server.Addr(), ":")
		replica := testredis.Server(t, redisproc.Config{Args: []string{"--replicaof", host, port}})
		other := testredis.Client(t, replica.Addr())
		testredis.Eventually(t, patience, func() bool {
			return strings.Contains(other.Info(t.Context(), "replication").Val(), "master_link_status:up")
		}, "the replica is in step")

		h := &tries{}
		client := r.client(r.server.URL())
		client.AddHook(h)
		p := r.start(pool.Config{Client: client, Concurrency: 4, Prefetch: 16, Handler: r.sleeping(5 * time.Millisecond)})
		r.publish(n)
		p.until("a good part is handled", func(c pool.QueueStats) bool { return c.Acked > n/20 })
		// What the producer was promised must be on the replica; what the pool did last need not.
		if in, err := r.control.Do(t.Context(), "wait", 1, 10_000).Int(); err != nil || in != 1 {
			t.Fatalf("WAIT: %d, %v", in, err)
		}
		if len(r.snapshot().ready) == 0 {
			t.Fatal("the load was used up before the failover")
		}
		must(t, r.server.Kill())
		addr := replica.Addr()
		h.target.Store(&addr)
		pause(t, 500*time.Millisecond) // a replica that nobody has promoted yet
		must(t, other.ReplicaOf(t.Context(), "NO", "ONE").Err())
		begun := time.Now()
		acked := p.counts().Acked
		p.until("acks go through", func(c pool.QueueStats) bool { return c.Acked > acked })
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("acked again %v after the promotion", took)
		}
		r.control = other
		r.check()
		r.awaitAllDone()
		r.awaitEmpty()
		p.stopClean()
		if c := p.counts(); c.Failed != 0 || c.DeadLettered != 0 {
			t.Errorf("messages were charged for the failover: %+v", c)
		}
		_, _, starts := r.totals()
		t.Logf("%d messages, %d starts", n, starts)
	})
}
