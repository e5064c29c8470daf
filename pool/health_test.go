package pool_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// verdict is a Health without its times.
func verdict(h pool.Health) string {
	text := h.State.String()
	for _, b := range []struct {
		word string
		is   bool
	}{{"live", h.Live}, {"ready", h.Ready}} {
		if b.is {
			text += " " + b.word
		}
	}
	return text
}

// TestHealthFollowsTheLife of a pool, to a drain that takes long.
func TestHealthFollowsTheLife(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		p := pool.New(cfg)
		wantEqual(t, "before Run", verdict(p.Health()), "starting live")
		run := r.startPool(p)
		r.push(body(0, 0))
		receive(t, b.running, "one runs")
		h := p.Health()
		wantEqual(t, "while it runs", verdict(h), "running live ready")
		wantEqual(t, "its queues", h.Queues, []pool.QueueHealth{{Name: queue, Layout: r.layout}})
		wantEqual(t, "its reasons", h.Reasons, nil)
		run.cancel()
		testredis.Eventually(t, patience, func() bool { return verdict(p.Health()) == "draining live" }, "it drains")
		wantEqual(t, "its reasons", p.Health().Reasons, []string{"the pool is draining"})
		b.letGo()
		run.stopped()
		wantEqual(t, "after Run", verdict(p.Health()), "stopped")
		wantEqual(t, "its reasons", p.Health().Reasons, []string{"the pool is stopped"})
	})
}

func TestHealthOfAPoolThatCannotStart(t *testing.T) {
	t.Parallel()
	p := pool.New(pool.Config{})
	if err := p.Run(t.Context()); err == nil {
		t.Fatal("it started")
	}
	wantEqual(t, "after Run", verdict(p.Health()), "stopped")
}

// TestHealthWhileRedisIsAway: not ready after the limit, alive all the time; and back when Redis is.
func TestHealthWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		proxy := faultproxy.Start(t, r.Addr)
		cfg := r.config(function(ackAll))
		cfg.Client, cfg.ReadinessLimit = open(t, r.Via(proxy.Addr())), 300*time.Millisecond
		p := r.start(cfg)
		r.push(body(0, 0))
		p.settled(1)
		proxy.Refuse(true)
		proxy.Cut()
		testredis.Eventually(t, patience, func() bool { return !p.Health().Ready }, "it is not ready")
		h := p.Health()
		wantEqual(t, "health", verdict(h), "running live")
		if h.Queues[0].Away < cfg.ReadinessLimit || len(h.Reasons) != 1 {
			t.Errorf("health %+v", h)
		}
		wantWords(t, h.Reasons[0], `queue "orders" (`+r.layout.String()+`): redis has been away for `)
		proxy.Refuse(false)
		testredis.Eventually(t, patience, func() bool { return p.Health().Ready }, "it is ready again")
		h = p.Health()
		wantEqual(t, "away", h.Queues[0].Away, 0)
		if p.stats().Reconnects < 1 {
			t.Error("no reconnect is counted")
		}
		p.stopped()
	})
}

// TestHealthOfABadKey: one queue that Redis refuses takes the process not out of service.
func TestHealthOfABadKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		cfg := r.config(function(ackAll))
		cfg.ReadinessLimit = time.Millisecond
		r.must(r.Client.Set(t.Context(), r.keys.ready, "somebody else's", 0).Err())
		p := r.start(cfg)
		testredis.Eventually(t, patience, func() bool { return len(r.logs.matching("WARN reserving is held up")) == 1 }, "it is refused")
		wantEqual(t, "health", verdict(p.Health()), "running live ready")
	})
}

// hanging is a hook of a client whose scripts do not end while it is on, whatever their deadline.
type hanging struct {
	on      atomic.Bool
	release chan struct{}
}

func (*hanging) DialHook(next redis.DialHook) redis.DialHook { return next }
func (*hanging) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *hanging) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.on.Load() && strings.HasPrefix(cmd.Name(), "eval") {
			<-h.release
		}
		return next(ctx, cmd)
	}
}

// TestHealthOfALoopThatHangs: it is named, and the pool is neither live nor ready until it goes on.
func TestHealthOfALoopThatHangs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		hook := &hanging{release: make(chan struct{})}
		cfg := r.config(function(ackAll))
		client := testredis.Client(t, r.URL)
		client.AddHook(hook)
		cfg.Client, cfg.LivenessLimit = client, 6*time.Second // an idle wait may take two
		p := r.start(cfg)
		r.push(body(0, 0))
		p.settled(1)
		wantEqual(t, "before", verdict(p.Health()), "running live ready")
		hook.on.Store(true)
		reason := `queue "orders" (` + r.layout.String() + `): the reserver has been stuck for `
		testredis.Eventually(t, patience, func() bool { return strings.Contains(strings.Join(p.Health().Reasons, "\n"), reason) }, "it is named")
		wantEqual(t, "health", verdict(p.Health()), "running")
		hook.on.Store(false)
		close(hook.release)
		testredis.Eventually(t, patience, func() bool { return p.Health().Ready }, "it goes on")
		wantEqual(t, "after", verdict(p.Health()), "running live ready")
	})
}

// TestFullAndPausedAreAlive, with a limit that both outlast.
func TestFullAndPausedAreAlive(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch, cfg.LivenessLimit = 2, 2, 6*time.Second
		p := r.start(cfg)
		watch := func(what string) {
			t.Helper()
			until := time.Now().Add(7 * time.Second)
			testredis.Eventually(t, patience, func() bool {
				if h := p.Health(); !h.Live || !h.Ready {
					t.Fatalf("%s: %+v", what, h)
				}
				return time.Now().After(until)
			}, "%s", what)
		}
		r.push(bodies(10)...)
		collect(t, b.running, 2, "two run")
		watch("full")
		r.must(p.Pause())
		watch("full and paused")
	})
}
