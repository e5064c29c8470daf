package pool_test

import (
	"errors"
	"testing"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestPausedInRedis: a full pool obeys the queue's key (R6). What nobody started goes back to the head as
// it was, what runs finishes, and nothing is taken until the key is gone.
func TestPausedInRedis(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 2, 50
		r.push(bodies(80)...)
		p := r.start(cfg)
		collect(t, b.running, 2, "two run")
		r.await("the buffer is full", func(s state) bool { return len(s.InFlight) == 50 })

		r.must(r.Client.Set(t.Context(), r.keys.paused, "whatever", 0).Err())
		s := r.await("what nobody started is handed back", func(s state) bool { return len(s.InFlight) == 2 })
		wantEqual(t, "ready", len(s.Ready), 78)
		b.letGo()
		p.settled(50)
		r.push(body(99, 0))
		testredis.Eventually(t, patience, func() bool { return p.stats().Paused }, "the pause is in the stats")
		wantEqual(t, "acked, handed back", []int64{p.stats().Acked, p.stats().HandedBack}, []int64{2, 48})
		wantEqual(t, "ready", len(r.state().Ready), 79)

		r.must(r.Client.Del(t.Context(), r.keys.paused).Err())
		r.awaitSettled()
		p.stopped()
		counts := p.stats()
		wantEqual(t, "acked", counts.Acked, 81)
		wantConserved(t, counts)
		for _, text := range []string{"queue is paused", "paused: messages nobody started are handed back", "queue is no longer paused"} {
			if n := len(r.logs.matching(text)); n != 1 {
				t.Errorf("%q is logged %d times", text, n)
			}
		}
	})
}

// TestPausedHere: one process stops, another goes on.
func TestPausedHere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 2, 20
		r.push(bodies(30)...)
		p := r.start(cfg)
		collect(t, b.running, 2, "two run")
		r.await("the buffer is full", func(s state) bool { return len(s.InFlight) == 20 })
		r.must(p.Pause(queue))
		r.must(p.Pause()) // again changes nothing
		r.await("what nobody started is handed back", func(s state) bool { return len(s.InFlight) == 2 && len(s.Ready) == 28 })

		seen, handler := watch(nil)
		other := r.config(handler)
		r.start(other)
		for _, d := range collect(t, seen, 28, "the other process takes them") {
			wantEqual(t, "number", d.Number, 1)
		}
		b.letGo()
		p.settled(20)
		wantEqual(t, "acked, handed back, paused", []any{p.stats().Acked, p.stats().HandedBack, p.stats().Paused}, []any{int64(2), int64(18), true})
		r.must(p.Resume(queue))
		wantEqual(t, "paused", p.stats().Paused, false)
		if n := len(r.logs.matching("queue is paused in this process")); n != 1 {
			t.Errorf("the pause is logged %d times", n)
		}
		if n := len(r.logs.matching("queue is resumed in this process")); n != 1 {
			t.Errorf("the end of the pause is logged %d times", n)
		}
	})
}

// TestPausedBeforeRun: a pool can start without taking anything.
func TestPausedBeforeRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		seen, handler := watch(nil)
		cfg := r.config(handler)
		p := pool.New(cfg)
		r.must(p.Pause())
		r.push(bodies(3)...)
		run := r.startPool(p)
		testredis.Eventually(t, patience, func() bool { return len(r.logs.matching("INFO consuming")) == 1 }, "it runs")
		wantEqual(t, "ready", len(r.state().Ready), 3)
		r.must(p.Resume())
		collect(t, seen, 3, "after the pause")
		run.stopped()
	})
}

func TestPauseOfAnUnknownQueue(t *testing.T) {
	t.Parallel()
	p := pool.New(pool.Config{Queues: []pool.Queue{{Name: queue}}})
	for what, err := range map[string]error{"Pause": p.Pause(queue, "invoices"), "Resume": p.Resume("invoices")} {
		if !errors.Is(err, pool.ErrNoQueue) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := p.Resume(queue); err != nil {
		t.Error(err)
	}
}
