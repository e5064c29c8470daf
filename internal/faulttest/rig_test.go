package faulttest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// rig is one queue on a real server, with a ledger and a connection of the test's own.
type rig struct {
	*ledger
	t       *testing.T
	layout  pool.Layout
	server  *redisproc.Server
	control redis.UniversalClient // never what a pool uses
	prefix  string
	queue   string
	keys    lua.Keys
	store   publishing
}

// publishing is what both stores offer to producers.
type publishing interface {
	Publish(ctx context.Context, bodies []string) error
}

// newRig makes a rig on a server of its own.
func newRig(t *testing.T, layout pool.Layout, cfg redisproc.Config) *rig {
	t.Helper()
	return newRigOn(t, layout, testredis.Server(t, cfg), "orders")
}

// newSharedRig makes a rig on the server that tests share.
func newSharedRig(t *testing.T, layout pool.Layout) *rig {
	t.Helper()
	r := newRigOn(t, layout, testredis.Shared(t), "orders")
	t.Cleanup(func() {
		k := r.keys
		for _, key := range []string{
			k.Ready, k.Processing, k.Deadlines, k.Delayed, k.Reserved, k.Notify, k.DeadLetters, k.DeadLetterNotify, k.Recoveries,
		} {
			if key == "" {
				continue
			}
			if err := r.control.Del(context.Background(), key).Err(); err != nil {
				t.Errorf("removing the test's keys: %v", err)
			}
		}
	})
	return r
}

func newRigOn(t *testing.T, layout pool.Layout, server *redisproc.Server, queue string) *rig {
	t.Helper()
	r := newRigBy(t, layout, testredis.Client(t, server.URL()), queue)
	r.server = server
	return r
}

// newRigBy makes a rig on whatever the client leads to. It has no server of its own, so pools on it need a client.
func newRigBy(t *testing.T, layout pool.Layout, control redis.UniversalClient, queue string) *rig {
	t.Helper()
	r := &rig{
		ledger: newLedger(), t: t, layout: layout, control: control, prefix: testredis.Prefix(t), queue: queue,
	}
	r.setKeys()
	return r
}

// beside makes a rig of another queue with the same server, connection and prefix.
func (r *rig) beside(queue string) *rig {
	r.t.Helper()
	other := *r
	other.ledger, other.queue = newLedger(), queue
	other.setKeys()
	return &other
}

func (r *rig) setKeys() {
	r.t.Helper()
	var err error
	if r.keys, err = lua.NewKeys(r.layout, r.prefix, r.queue, ""); err != nil {
		r.t.Fatal(err)
	}
	o := lua.Options{Client: r.control, Keys: r.keys}
	if r.layout == pool.Zset {
		r.store = lua.NewZset(o)
	} else {
		r.store = lua.NewLegacy(o)
	}
}

// publish stores n messages in one step and returns the bodies.
func (r *rig) publish(n int) []string {
	r.t.Helper()
	return r.publishURN(testURN, n)
}

func (r *rig) publishURN(urn string, n int) []string {
	r.t.Helper()
	seqs, bodies := make([]int, n), make([]string, n)
	for i := range n {
		seqs[i], bodies[i] = r.body(r.t, r.queue, urn)
	}
	if err := r.store.Publish(r.t.Context(), bodies); err != nil {
		r.t.Fatalf("publishing: %v", err)
	}
	r.stored(seqs...)
	return bodies
}

// handler notes starts and successes around fn, which may be nil.
func (r *rig) handler(fn func(ctx context.Context, seq int, d *delivery.Delivery) error) delivery.Handler {
	mux := router.NewMux()
	mux.HandleFunc(testURN, func(ctx context.Context, d *delivery.Delivery) error {
		seq, ok := sequence(d.Body)
		if !ok {
			r.t.Errorf("a handler got a body without a number: %q", d.Body)
			return nil
		}
		r.begin(seq)
		if fn != nil {
			if err := fn(ctx, seq, d); err != nil {
				return err
			}
		}
		r.finish(seq)
		return nil
	})
	return mux
}

// sleeping is a handler that takes its time and heeds its context.
func (r *rig) sleeping(d time.Duration) delivery.Handler {
	return r.handler(func(ctx context.Context, _ int, _ *delivery.Delivery) error { return retry.Sleep(ctx, d) })
}

// awaitAllDone waits until every certain message was handled.
func (r *rig) awaitAllDone() {
	r.t.Helper()
	testredis.Eventually(r.t, patience, r.allDone, "all messages handled")
}

// awaitEmpty waits until nothing is left in any place but the dead letters, and checks the ledger.
func (r *rig) awaitEmpty() {
	r.t.Helper()
	var s snapshot
	testredis.Eventually(r.t, patience, func() bool {
		s = r.snapshot()
		return len(s.ready)+len(s.flight)+len(s.leases)+len(s.delayed) == 0
	}, "ready, in flight, deadlines and delayed are empty")
	if s.notify != 0 {
		r.t.Errorf("%d notify tokens are left on an empty queue (B41)", s.notify)
	}
	r.conserve(r.t, s)
}

// check takes a snapshot and checks the ledger against it.
func (r *rig) check() snapshot {
	r.t.Helper()
	s := r.snapshot()
	r.conserve(r.t, s)
	return s
}
