package faulttest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// halfOpenLimit is how long a pool may take to notice that its connections lead nowhere.
const halfOpenLimit = 10 * time.Second

// TestB15HalfOpenConnections lets every connection of a pool go silent while new ones work, under load and on an idle
// queue: the pool consumes again within ten seconds, whatever its connections were doing.
func TestB15HalfOpenConnections(t *testing.T) {
	for _, busy := range []bool{true, false} {
		t.Run(map[bool]string{true: "busy", false: "idle"}[busy], func(t *testing.T) {
			eachLayout(t, func(t *testing.T, layout pool.Layout) {
				r := newRig(t, layout, redisproc.Config{})
				proxy := faultproxy.Start(t, r.server.Addr())
				h, client := &tries{}, r.client("redis://"+proxy.Addr())
				client.AddHook(h)
				p := r.start(pool.Config{Client: client, Concurrency: 8, Prefetch: 64, RetryAfter: 8 * time.Second, Handler: r.sleeping(2 * time.Millisecond)})
				ctx, cancel := context.WithCancel(context.Background())
				loaded := r.load(ctx, r.client(r.server.URL()), 2*time.Millisecond)
				defer func() { cancel(); <-loaded }()
				p.until("the load flows", func(c pool.QueueStats) bool { return c.Acked > 300 })
				if !busy {
					cancel()
					<-loaded
					r.awaitAllDone()
					pause(t, time.Second) // now it waits
				}
				r.crowd(client, 10)
				calm, conns := p.goroutines(), client.PoolStats().TotalConns
				proxy.Strand()
				gone := time.Now()
				took := r.resumes(r.control, gone)
				t.Logf("%d connections, consumed again after %v", conns, took.Round(time.Millisecond))
				if took > halfOpenLimit {
					t.Errorf("consumed again after %v, want at most %v", took, halfOpenLimit)
				}
				h.calm(t, gone, gone.Add(took))
				cancel()
				<-loaded
				r.awaitAllDone()
				r.awaitEmpty()
				testredis.Eventually(t, 15*time.Second, func() bool {
					return p.goroutines() <= calm+3 && client.PoolStats().TotalConns <= conns+1
				}, "as many goroutines and connections as before, %d and %d", calm, conns)
				p.logs.inPairs(t)
				p.stopClean()
			})
		})
	}
}

// crowd makes a client's pool hold at least n connections, all idle but those in use.
func (r *rig) crowd(client *redis.Client, n int) {
	r.t.Helper()
	conns := make([]*redis.Conn, n)
	for i := range conns {
		conns[i] = client.Conn()
		must(r.t, conns[i].Ping(r.t.Context()).Err())
	}
	for _, c := range conns {
		must(r.t, c.Close())
	}
}
