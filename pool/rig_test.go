package pool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

const (
	queue = "orders"
	urn   = "urn:babel:orders:created"
)

// rig is one queue of one layout on one server, and what a test needs to run a pool on it.
type rig struct {
	testredis.Backend
	t      *testing.T
	layout pool.Layout
	keys   keys
	logs   *recorder

	blockers []*blocker
}

func newRig(t *testing.T, b testredis.Backend, layout pool.Layout) *rig {
	return &rig{Backend: b, t: t, layout: layout, keys: keysOf(layout, b.Prefix, queue), logs: &recorder{}}
}

// each runs fn on both servers in both layouts.
func each(t *testing.T, fn func(t *testing.T, r *rig)) {
	t.Helper()
	for _, layout := range []pool.Layout{pool.Legacy, pool.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			on(t, layout, fn)
		})
	}
}

// on runs fn on both servers in one layout.
func on(t *testing.T, layout pool.Layout, fn func(t *testing.T, r *rig)) {
	t.Helper()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) { fn(t, newRig(t, b, layout)) })
}

// config is a pool on the rig's queue; the test changes what it is about.
func (r *rig) config(handler delivery.Handler) pool.Config {
	return pool.Config{
		Client: r.Client, Queues: []pool.Queue{{Name: queue}}, Layout: r.layout, Handler: handler,
		KeyPrefix: r.Prefix, Concurrency: 8, Logger: r.logs.logger(),
	}
}

// function makes a mux with one handler, for the usual URN.
func function(f func(ctx context.Context, d *delivery.Delivery) error) *router.Mux {
	mux := router.NewMux()
	mux.HandleFunc(urn, f)
	return mux
}

// ackAll handles everything with success.
func ackAll(context.Context, *delivery.Delivery) error { return nil }

// fail handles nothing with success.
func fail(context.Context, *delivery.Delivery) error { return errBoom }

// watch makes a handler that sends a copy of what it sees and returns what verdict says; nil acks all.
func watch(verdict func(d *delivery.Delivery) error) (chan delivery.Delivery, *router.Mux) {
	seen := make(chan delivery.Delivery, 2000)
	return seen, function(func(_ context.Context, d *delivery.Delivery) error {
		seen <- *d
		if verdict == nil {
			return nil
		}
		return verdict(d)
	})
}

// blocker is a handler that waits until the test lets it go.
type blocker struct {
	running chan delivery.Delivery
	release chan struct{}
}

// block makes a blocker. It is let go when the test ends at the latest.
func (r *rig) block() *blocker {
	b := &blocker{make(chan delivery.Delivery, 2000), make(chan struct{})}
	r.blockers = append(r.blockers, b)
	return b
}

func (b *blocker) letGo() {
	select {
	case <-b.release:
	default:
		close(b.release)
	}
}

// Handle ignores its context.
func (b *blocker) Handle(_ context.Context, d *delivery.Delivery) error {
	b.running <- *d
	<-b.release
	return nil
}

// errBoom is what failing handlers return.
var errBoom = errors.New("boom é/x")

// running is a pool that runs.
type running struct {
	*pool.Pool
	t      *testing.T
	cancel context.CancelFunc
	ended  chan error // holds Run's error once it has returned
	over   bool       // the test has stopped it
}

// start runs a pool until the test stops it or ends. A pool that the test does not stop must end cleanly.
func (r *rig) start(cfg pool.Config) *running {
	r.t.Helper()
	return r.startPool(pool.New(cfg))
}

func (r *rig) startPool(pool *pool.Pool) *running {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &running{Pool: pool, t: r.t, cancel: cancel, ended: make(chan error, 1)}
	go func() { p.ended <- p.Run(ctx) }()
	r.t.Cleanup(func() {
		for _, b := range r.blockers {
			b.letGo() // or the stop waits for them
		}
		if p.over {
			return
		}
		if err := p.stop(); err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
	return p
}

// stop ends the pool's context and returns Run's error. It may be called once.
func (p *running) stop() error {
	p.t.Helper()
	p.cancel()
	p.over = true
	select {
	case err := <-p.ended:
		return err
	case <-time.After(patience):
		p.t.Errorf("Run did not return within %v", patience)
		return nil
	}
}

// stopped stops the pool and fails the test when the drain was not clean.
func (p *running) stopped() {
	p.t.Helper()
	if err := p.stop(); err != nil {
		p.t.Errorf("Run: %v", err)
	}
}

// stats are the counts of a pool's first queue; zero before it has started.
func (p *running) stats() pool.QueueStats {
	if all := p.Stats().Queues; len(all) > 0 {
		return all[0]
	}
	return pool.QueueStats{}
}

// settled waits until the pool has counted n settlements of any kind, and returns the counts.
func (p *running) settled(n int) pool.QueueStats {
	p.t.Helper()
	testredis.Eventually(p.t, patience, func() bool { return settlements(p.stats()) >= int64(n) }, "%d settlements", n)
	return p.stats()
}

// settlements is how many reservations came to an end, by any way but a lost lease.
func settlements(s pool.QueueStats) int64 {
	return s.Acked + s.Released + s.Returned + s.Requeued + s.Left + s.DeadLettered + s.HandedBack + s.Late + s.Missing
}
