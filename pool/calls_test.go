package pool_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// told keeps what OnCall is told.
type told struct {
	mu    sync.Mutex
	calls []pool.Call
}

func (o *told) onCall(c pool.Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, c)
}

// messages sums up what calls carried, by what they did; those that carried nothing are left out.
func (o *told) messages() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	sums := map[string]int{}
	for _, c := range o.calls {
		if c.Messages > 0 && c.Err == nil {
			sums[c.Op] += c.Messages
		}
	}
	return sums
}

// TestOnCall: every call made for messages is told of, with what it carried.
func TestOnCall(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b, o := r.block(), &told{}
		cfg := r.config(b)
		cfg.OnCall, cfg.Concurrency, cfg.Prefetch = o.onCall, 2, 50
		r.push(bodies(80)...)
		p := r.start(cfg)
		collect(t, b.running, 2, "two run")
		r.await("the buffer is full", func(s state) bool { return len(s.InFlight) == 50 })
		p.cancel()
		r.await("what nobody started is handed back", func(s state) bool { return len(s.InFlight) == 2 })
		b.letGo()
		p.stopped()
		want := map[string]int{pool.CallReserve: 50, pool.CallHandBack: 48, pool.CallSettle: 2}
		got := o.messages()
		delete(got, pool.CallAudit) // what it sees depends on when it looks
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("messages by call (-want +got):\n%s", diff)
		}
		for _, c := range o.calls {
			if c.Queue != queue || c.Layout != r.layout || c.Took <= 0 || c.Err != nil {
				t.Errorf("told of %+v", c)
			}
		}
	})
}

// TestOnCallHearsOfErrors: a call that fails is told of with its error.
func TestOnCallHearsOfErrors(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		heard := make(chan pool.Call, 1000)
		cfg := r.config(function(ackAll))
		cfg.OnCall = func(c pool.Call) { heard <- c }
		r.must(r.Client.Set(t.Context(), r.keys.ready, "somebody else's", 0).Err())
		r.start(cfg)
		for {
			c := receive(t, heard, "the error")
			if c.Op != pool.CallReserve {
				continue
			}
			if c.Err == nil || !strings.Contains(c.Err.Error(), "WRONGTYPE") || c.Messages != 0 {
				t.Errorf("told of %+v", c)
			}
			return
		}
	})
}

// TestOnCallThatPanics is told of in the log, once, and stops nothing (R1).
func TestOnCallThatPanics(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		cfg := r.config(function(ackAll))
		cfg.OnCall = func(pool.Call) { panic("metrics\nare broken") }
		r.push(bodies(100)...)
		p := r.start(cfg)
		wantEqual(t, "acked", p.settled(100).Acked, 100)
		p.stopped()
		if n := len(r.logs.matching("ERROR OnCall panicked", "queue=orders")); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// TestDeadLettersByReason: they are counted as their records say (D2).
func TestDeadLettersByReason(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		p := r.start(r.config(function(func(_ context.Context, d *delivery.Delivery) error {
			if d.Meta.ID < "m-0003" {
				return delivery.DeadLetter(errBoom)
			}
			return nil
		})))
		r.push(body(0, 0), body(1, 0), body(2, 0), body(3, 0), foreignURN(4, created), foreignURN(5, created), "poison", "[]", laravelJob, `{}`)
		testredis.Eventually(t, patience, func() bool { s := p.stats(); return s.DeadLettered == 9 && s.Acked == 1 }, "all are settled")
		r.awaitSettled()
		s := p.stats()
		wantEqual(t, "failed, unknown_urn, poison", []int64{s.DeadFailed, s.DeadUnknownURN, s.DeadPoison}, []int64{3, 2, 4})
	})
}

// TestStatsTellTheSizes of a pool that is busy.
func TestStatsTellTheSizes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 3, 20
		r.push(bodies(30)...)
		p := r.start(cfg)
		collect(t, b.running, 3, "three run")
		r.await("the buffer is full", func(s state) bool { return len(s.InFlight) == 20 })
		s := p.Stats()
		wantEqual(t, "sizes", fmt.Sprint(s.Held, s.Prefetch, s.Running, s.Concurrency, s.Queues[0].Layout), fmt.Sprint(20, 20, 3, 3, r.layout))
	})
}
