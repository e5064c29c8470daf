package faulttest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
)

// ground is a set of servers with one master for the rig's queue, which changes.
type ground struct {
	*rig
	servers []*redisproc.Server
	open    func() redis.UniversalClient // as a worker would
	master  func(ctx context.Context) (*redisproc.Server, error)
	// handOver makes the replica master while the old one lives; it returns when everybody agrees.
	handOver func(ctx context.Context) error
	// await returns when the replica of a killed master has taken over.
	await func(ctx context.Context, killed *redisproc.Server) error
	// whole returns when master and replica are up and in step.
	whole func(ctx context.Context) error
	// node is a client of the present master alone, for calls that WAIT on the same connection.
	node func(ctx context.Context) (*redis.Client, error)
}

// grounds are the ways in which masters change.
var grounds = map[string]func(t *testing.T, layout pool.Layout) *ground{
	"cluster":  newClusterGround,
	"sentinel": newSentinelGround,
}

// closing closes a client when the test ends.
func closing(t *testing.T, client redis.UniversalClient) redis.UniversalClient {
	t.Helper()
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("closing a client: %v", err)
		}
	})
	return client
}

// tagged is a queue's name whose keys share one slot.
const tagged = "{orders}"

// newClusterRig makes a rig on a cluster, and says how to open clients and what the queue's slot is.
func newClusterRig(t *testing.T, layout pool.Layout, cluster *redisproc.Cluster) (r *rig, open func() redis.UniversalClient, slot int) {
	t.Helper()
	open = func() redis.UniversalClient {
		return closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ContextTimeoutEnabled: true}))
	}
	r = newRigBy(t, layout, open(), tagged)
	return r, open, lua.Slot(r.keys.Ready)
}

func newClusterGround(t *testing.T, layout pool.Layout) *ground {
	t.Helper()
	cluster := testredis.Cluster(t, redisproc.ClusterConfig{Replicas: true})
	r, open, slot := newClusterRig(t, layout, cluster)
	own, ok := open().(*redis.ClusterClient)
	if !ok {
		t.Fatal("no client of a cluster")
	}
	return &ground{
		rig: r, servers: cluster.Nodes(), open: open, whole: cluster.AwaitWhole,
		master:   func(ctx context.Context) (*redisproc.Server, error) { return cluster.Owner(ctx, slot) },
		handOver: func(ctx context.Context) error { return cluster.Failover(ctx, slot) },
		await: func(ctx context.Context, killed *redisproc.Server) error {
			return cluster.AwaitOther(ctx, slot, killed)
		},
		node: func(ctx context.Context) (*redis.Client, error) {
			own.ReloadState(ctx)
			return own.MasterForKey(ctx, r.keys.Ready)
		},
	}
}

func newSentinelGround(t *testing.T, layout pool.Layout) *ground {
	t.Helper()
	sentinels := testredis.Sentinels(t, redisproc.SentinelConfig{})
	open := func() *redis.Client {
		client := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: sentinels.Name(), SentinelAddrs: sentinels.Addrs(), ContextTimeoutEnabled: true,
		})
		closing(t, client)
		return client
	}
	r := newRigBy(t, layout, open(), "orders")
	own := open()
	return &ground{
		rig: r, servers: sentinels.Servers(), open: func() redis.UniversalClient { return open() },
		master: sentinels.Master, handOver: sentinels.Failover, await: sentinels.AwaitOther, whole: sentinels.AwaitWhole,
		node: func(context.Context) (*redis.Client, error) { return own, nil },
	}
}

// publishConfirmed publishes until ctx ends and then closes the channel. Only what the replica has is certain: a
// master that fails loses what it alone had.
func (g *ground) publishConfirmed(ctx context.Context, every time.Duration) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			seq, body := g.body(g.t, g.queue, testURN)
			if g.confirmed(context.WithoutCancel(ctx), body) {
				g.stored(seq)
			}
			_ = retry.Sleep(ctx, every) // the loop looks at ctx
		}
	}()
	return ended
}

func (g *ground) confirmed(ctx context.Context, body string) bool {
	node, err := g.node(ctx)
	if err != nil {
		return false
	}
	store, ok := g.store.(interface {
		PublishIn(ctx context.Context, p redis.Pipeliner, bodies []string) error
	})
	if !ok {
		return false
	}
	var replicas *redis.Cmd
	_, err = node.Pipelined(ctx, func(p redis.Pipeliner) error {
		if err := store.PublishIn(ctx, p, []string{body}); err != nil {
			return err
		}
		replicas = p.Do(ctx, "wait", 1, 500)
		return nil
	})
	if err != nil {
		return false
	}
	n, err := replicas.Int()
	return err == nil && n == 1
}

// resumes publishes a message, once there is somebody to take it, and returns how long after back it was handled.
func (r *rig) resumes(client redis.UniversalClient, back time.Time) time.Duration {
	r.t.Helper()
	producer := *r
	producer.control = client
	producer.setKeys()
	seq, body := r.body(r.t, r.queue, testURN)
	testredis.Eventually(r.t, patience, func() bool {
		err := producer.store.Publish(r.t.Context(), []string{body})
		if errors.Is(err, flow.ErrAmbiguous) {
			r.t.Fatalf("publishing the probe: %v", err)
		}
		return err == nil
	}, "a probe is published")
	r.stored(seq)
	testredis.Eventually(r.t, patience, func() bool { return r.started(seq) > 0 }, "the probe is consumed")
	return time.Since(back)
}

// calls is how often a server has carried a command out.
func calls(t *testing.T, server *redisproc.Server, command string) string {
	t.Helper()
	for line := range strings.Lines(testredis.Client(t, server.Addr()).Info(t.Context(), "commandstats").Val()) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			n, _, _ := strings.Cut(rest, ",")
			return n
		}
	}
	return "0"
}
