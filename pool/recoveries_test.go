package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// abandoned puts bodies in flight as a dead process has left them: their leases ran out long ago.
func (r *rig) abandoned(bodies ...string) {
	r.t.Helper()
	if r.layout == pool.Zset {
		r.lease(1, bodies...)
		return
	}
	r.rpush(r.keys.inFlight, bodies...)
	for i, body := range bodies {
		r.lease(1, fmt.Sprintf("%032x:%s", i, body))
	}
}

// recoveries is how many messages have a count of lost workers.
func (r *rig) recoveries() int64 {
	r.t.Helper()
	n, err := r.Client.HLen(r.t.Context(), r.keys.ready+":recoveries").Result()
	r.must(err)
	return n
}

// TestB21GivenUpWithoutRunning: a message that has lost MaxRecoveries workers goes to the dead letters as poison and does
// not run; OnError is told; it is counted; its count is gone. Two copies stand for two losses of one message, as they
// share a count, whatever their attempts. What lost fewer runs.
func TestB21GivenUpWithoutRunning(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		r.abandoned(body(1, 3), body(1, 4), body(2, 0))
		told, onError := reports(10)
		seen, handler := watch(nil)
		cfg := r.config(handler)
		cfg.MaxRecoveries, cfg.OnError = 2, onError
		p := r.start(cfg)
		if d := receive(t, seen, "the message that has lost one worker"); d.Meta.ID != "m-0002" {
			t.Errorf("message %s runs", d.Meta.ID)
		}
		for range 2 {
			rep := receive(t, told, "a report")
			var lost *router.WorkersLostError
			if !errors.As(rep.err, &lost) || lost.Workers != 2 || rep.env.Meta.ID != "m-0001" || rep.raw == "" {
				t.Errorf("OnError was told %v of %q", rep.err, rep.env.Meta.ID)
			}
		}
		r.awaitSettled()
		var want []string
		for _, attempts := range []int64{3, 4} {
			if r.layout == pool.Zset {
				attempts++
			}
			want = append(want, dead(body(1, attempts), "poison", `"worker lost 2 times"`, `"*router.WorkersLostError"`, attempts))
		}
		s := r.state()
		var got []string
		for _, record := range s.Dead {
			got = append(got, timeless(record))
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
		testredis.Eventually(t, patience, func() bool { return r.recoveries() == 0 }, "no count is left")
		p.stopped()
		if st := p.stats(); st.WorkersLost != 2 || st.DeadLettered != 2 || st.Acked != 1 || st.Poison != 0 {
			t.Errorf("counts %+v", st)
		}
		if len(seen) > 0 {
			t.Errorf("%d more messages ran", len(seen))
		}
	})
}

// TestB21FailuresAreNotLostWorkers: a failing handler leaves its message to its lease in both layouts (L6, Z5), and more
// often than workers may be lost. That is told from a lost worker: it runs until it succeeds.
func TestB21FailuresAreNotLostWorkers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		const failures = 3
		var runs atomic.Int64
		done := make(chan struct{})
		cfg := r.config(function(func(context.Context, *delivery.Delivery) error {
			if runs.Add(1) <= failures {
				return errBoom
			}
			close(done)
			return nil
		}))
		cfg.MaxRecoveries, cfg.RetryAfter = 2, 2*time.Second
		r.push(body(1, 0))
		p := r.start(cfg)
		receive(t, done, "the run that succeeds")
		r.awaitSettled()
		p.stopped()
		if st := p.stats(); st.Left != failures || st.Acked != 1 || st.DeadLettered != 0 {
			t.Errorf("counts %+v", st)
		}
		if n := r.recoveries(); n != 0 {
			t.Errorf("%d messages have a count", n)
		}
	})
}

// TestB21OneLastChanceAtATime: of messages in their last chance a pool holds one, for all its queues; other messages
// run meanwhile, and in the end all have run.
func TestB21OneLastChanceAtATime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		other := *r
		other.keys = keysOf(r.layout, r.Prefix, "other")
		r.abandoned(body(1, 1), body(2, 1), body(3, 1))
		other.abandoned(body(4, 1), body(5, 1))
		r.push(body(100, 0))
		var held, most, ran atomic.Int64
		seen := make(chan string, 100)
		cfg := r.config(function(func(ctx context.Context, d *delivery.Delivery) error {
			if d.Meta.ID != "m-0100" {
				n := held.Add(1)
				defer held.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				select { // long enough for others to start beside it
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
				}
				ran.Add(1)
			}
			seen <- d.Meta.ID
			return nil
		}))
		cfg.Queues = append(cfg.Queues, pool.Queue{Name: "other"})
		cfg.MaxRecoveries = 2 // each has lost one worker when it is swept
		p := r.start(cfg)
		ids := collect(t, seen, 6, "runs")
		slices.Sort(ids)
		if got := strings.Join(ids, " "); got != "m-0001 m-0002 m-0003 m-0004 m-0005 m-0100" {
			t.Errorf("ran %s", got)
		}
		r.awaitSettled()
		other.awaitSettled()
		p.stopped()
		if n := most.Load(); n != 1 {
			t.Errorf("%d messages in their last chance ran at once, want 1", n)
		}
		if dead := len(r.state().Dead) + len(other.state().Dead); dead > 0 {
			t.Errorf("%d dead letters", dead)
		}
	})
}

// TestB21OffCountsNothing: by default a message may lose any number of workers.
func TestB21OffCountsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		r.abandoned(body(1, 3), body(1, 4), body(1, 5))
		seen, handler := watch(nil)
		p := r.start(r.config(handler))
		collect(t, seen, 3, "runs")
		r.awaitSettled()
		p.stopped()
		r.wantKeys()
	})
}
