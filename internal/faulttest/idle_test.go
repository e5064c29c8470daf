package faulttest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
)

// idleRigs are the queues of the idle pool.
func idleRigs(r *rig, handler func(*rig) delivery.Handler) (rigs []*rig, queues []pool.Queue) {
	for i := range 10 {
		one := r.beside("idle" + strconv.Itoa(i))
		rigs = append(rigs, one)
		queues = append(queues, pool.Queue{Name: one.queue, Handler: handler(one)})
	}
	return rigs, queues
}

// TestB39IdleQueuesAreQuiet counts the round trips of a pool with nothing to do.
func TestB39IdleQueuesAreQuiet(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		r := newSharedRig(t, layout)
		proxy := faultproxy.Start(t, r.server.Addr())
		_, queues := idleRigs(r, func(one *rig) delivery.Handler { return one.handler(nil) })
		p := r.start(pool.Config{Client: r.client("redis://" + proxy.Addr()), Queues: queues, Concurrency: 16})
		pause(t, 2*time.Second) // connections and scripts are there now
		proxy.ResetCounts()
		begun := time.Now()
		pause(t, scaled(10*time.Second, 60*time.Second))
		trips, seconds := proxy.RoundTrips(), time.Since(begun).Seconds()
		rate := float64(trips) / seconds / float64(len(queues))
		t.Logf("%.4f round trips a second per idle queue", rate)
		if rate > 2 {
			t.Errorf("%.4f round trips a second per idle queue, want at most 2", rate)
		}
		if rate < 0.5 {
			t.Errorf("%.2f round trips a second: the pool does not look at its queues", rate)
		}
		p.stopClean()
	})
}

// TestB39MessagesWithoutAToken pushes as other producers do, without a notify token: an idle zset pool finds
// the message at its next look (B41). An idle legacy pool is woken by the list itself.
func TestB39MessagesWithoutAToken(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		r := newSharedRig(t, layout)
		p := r.start(pool.Config{})
		for i := range 3 {
			pause(t, 200*time.Millisecond) // blocked again
			seq, body := r.body(t, r.queue, testURN)
			begun := time.Now()
			must(t, r.control.RPush(t.Context(), r.keys.Ready, body).Err())
			r.stored(seq)
			r.awaitAllDone()
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("message %d was handled after %v, want a second", i, took)
			}
		}
		p.stopClean()
		r.awaitEmpty()
	})
}

// TestB39DelayedMessageWakesAnIdlePool: the score is in whole seconds, so a message falls due up to a second
// early (Z9), and it is picked up within a second.
func TestB39DelayedMessageWakesAnIdlePool(t *testing.T) {
	t.Parallel()
	r := newSharedRig(t, pool.Zset)
	started := make(chan time.Time, 1)
	p := r.start(pool.Config{Handler: r.handler(func(context.Context, int, *delivery.Delivery) error {
		started <- time.Now()
		return nil
	})})
	store := lua.NewZset(lua.Options{Client: r.control, Keys: r.keys})
	for _, delay := range []time.Duration{time.Second, 3 * time.Second} {
		seq, body := r.body(t, r.queue, testURN)
		added, err := store.PublishDelayed(t.Context(), []lua.Delayed{{Delay: int64(delay.Seconds()), Body: body}})
		if err != nil || !added[0] {
			t.Fatalf("publishing delayed: %v, %v", added, err)
		}
		r.stored(seq)
		due := time.Now().Add(delay)
		select {
		case at := <-started:
			if late := at.Sub(due); late < -time.Second || late > 1500*time.Millisecond {
				t.Errorf("a message delayed by %v started %v after that", delay, late)
			}
		case <-time.After(patience):
			t.Fatal("the delayed message was not delivered")
		}
	}
	p.stopClean()
	r.awaitEmpty()
}
