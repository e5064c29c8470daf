package pool_test

import (
	"context"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// keys are the keys of a queue, spelt out here so that the tests do not take the code's word for them.
type keys struct {
	ready, inFlight, leases, delayed, notify, paused, dead, deadNotify string
}

func keysOf(layout pool.Layout, prefix, queue string) keys {
	if layout == pool.Zset {
		ready := prefix + "queues:" + queue
		return keys{
			ready: ready, inFlight: ready + ":reserved", leases: ready + ":reserved", delayed: ready + ":delayed",
			notify: ready + ":notify", paused: ready + ":paused", dead: ready + ".dlq", deadNotify: ready + ".dlq:notify",
		}
	}
	ready := prefix + queue
	return keys{
		ready: ready, inFlight: ready + ":processing", leases: ready + ":processing:deadlines",
		paused: ready + ":paused", dead: ready + ".dlq",
	}
}

// push publishes bodies as the layout asks: in the zset layout with one token each.
func (r *rig) push(bodies ...string) {
	r.t.Helper()
	if r.layout != pool.Zset {
		r.pushBare(bodies...)
		return
	}
	for part := range slices.Chunk(bodies, 500) {
		_, err := r.Client.TxPipelined(r.t.Context(), func(p redis.Pipeliner) error { // one step (Z1)
			p.RPush(r.t.Context(), r.keys.ready, part)
			p.RPush(r.t.Context(), r.keys.notify, slices.Repeat([]string{"1"}, len(part)))
			return nil
		})
		r.must(err)
	}
}

// pushBare publishes bodies without tokens, as some peers do.
func (r *rig) pushBare(bodies ...string) {
	r.t.Helper()
	r.rpush(r.keys.ready, bodies...)
}

func (r *rig) rpush(key string, values ...string) {
	r.t.Helper()
	for part := range slices.Chunk(values, 500) {
		r.must(r.Client.RPush(r.t.Context(), key, part).Err())
	}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// state is everything a queue holds, in the order in which Redis keeps it.
type state struct {
	Ready, InFlight, Dead []string
	Delayed               []string
	Leases                int // deadlines; in the zset layout the same members as InFlight
	Notify, DeadNotify    int
}

// state reads the queue in one transaction.
func (r *rig) state() state {
	r.t.Helper()
	// Not t.Context: clean-ups look at the state too.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var s state
	pipe := r.Client.TxPipeline()
	ready, dead := pipe.LRange(ctx, r.keys.ready, 0, -1), pipe.LRange(ctx, r.keys.dead, 0, -1)
	leases := pipe.ZCard(ctx, r.keys.leases)
	var flight, delayed *redis.StringSliceCmd
	var notify, deadNotify *redis.IntCmd
	if r.layout == pool.Zset {
		flight, delayed = pipe.ZRange(ctx, r.keys.inFlight, 0, -1), pipe.ZRange(ctx, r.keys.delayed, 0, -1)
		notify, deadNotify = pipe.LLen(ctx, r.keys.notify), pipe.LLen(ctx, r.keys.deadNotify)
	} else {
		flight = pipe.LRange(ctx, r.keys.inFlight, 0, -1)
	}
	_, err := pipe.Exec(ctx)
	r.must(err)
	s.Ready, s.InFlight, s.Dead, s.Leases = ready.Val(), flight.Val(), dead.Val(), int(leases.Val())
	if r.layout == pool.Zset {
		s.Delayed, s.Notify, s.DeadNotify = delayed.Val(), int(notify.Val()), int(deadNotify.Val())
	}
	return s
}

// await waits until the queue's state is as cond wants it.
func (r *rig) await(what string, cond func(s state) bool) state {
	r.t.Helper()
	var last state
	testredis.Eventually(r.t, patience, func() bool { last = r.state(); return cond(last) }, "%s", what)
	return last
}

// awaitSettled waits until nothing is ready, in flight or delayed.
func (r *rig) awaitSettled() state {
	r.t.Helper()
	return r.await("nothing is ready, in flight or delayed", func(s state) bool {
		return len(s.Ready)+len(s.InFlight)+len(s.Delayed)+s.Leases == 0
	})
}

// wantDead compares the dead letters, in order.
func (r *rig) wantDead(want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), r.state().Dead); diff != "" {
		r.t.Errorf("dead letters (-want +got):\n%s", diff)
	}
}

// wantKeys compares the names of all keys the test has, without its prefix.
func (r *rig) wantKeys(want ...string) {
	r.t.Helper()
	all, err := r.Client.Keys(r.t.Context(), r.Prefix+"*").Result()
	r.must(err)
	got := map[string]bool{}
	for _, k := range all {
		got[k[len(r.Prefix):]] = true
	}
	wanted := map[string]bool{}
	for _, k := range want {
		wanted[k] = true
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		r.t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// serverTime is the server's clock.
func (r *rig) serverTime() time.Time {
	r.t.Helper()
	now, err := r.Client.Time(context.Background()).Result()
	if err != nil {
		r.t.Error(err) // may be called by a handler
	}
	return now
}

// lease gives members of the queue's leases a score, as if it had been set at reserve. In the zset layout
// that puts them in reserved.
func (r *rig) lease(score float64, members ...string) {
	r.t.Helper()
	r.zadd(r.keys.leases, score, members)
}

// due gives members of delayed a score.
func (r *rig) due(score float64, members ...string) {
	r.t.Helper()
	r.zadd(r.keys.delayed, score, members)
}

func (r *rig) zadd(key string, score float64, members []string) {
	r.t.Helper()
	for len(members) > 0 {
		n := min(len(members), 500)
		scored := make([]redis.Z, n)
		for i := range scored {
			scored[i] = redis.Z{Score: score, Member: members[i]}
		}
		r.must(r.Client.ZAdd(r.t.Context(), key, scored...).Err())
		members = members[n:]
	}
}
