package pool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/pool"
)

// TestDepths: what is in Redis, by state, and how old the next message is.
func TestDepths(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 2, 2
		cfg.Queues = append(cfg.Queues, pool.Queue{Name: "empty"})
		p := pool.New(cfg)
		if _, err := p.Depths(t.Context()); !errors.Is(err, pool.ErrNotStarted) {
			t.Errorf("before Run: %v", err)
		}
		r.rpush(r.keys.dead, "dead", "letters")
		r.push(bodies(10)...)
		want := []pool.QueueDepth{
			{Name: queue, Layout: r.layout, Ready: 9, InFlight: 1, DeadLetters: 2, Oldest: time.UnixMilli(created)},
			{Name: "empty", Layout: r.layout},
		}
		if r.layout == pool.Zset {
			r.due(9e9, "later")
			want[0].Delayed = 1
		}
		r.startPool(p)
		receive(t, b.running, "one runs: the other slot is the other queue's")
		got, err := p.Depths(t.Context())
		r.must(err)
		wantEqual(t, "depths", got, want)

		r.must(r.Client.Set(t.Context(), keysOf(r.layout, r.Prefix, "empty").dead, "somebody else's", 0).Err())
		got, err = p.Depths(t.Context())
		wantEqual(t, "depths of what can be read", got, want[:1])
		if err == nil {
			t.Fatal("no error")
		}
		wantWords(t, err.Error(), `queue "empty"`, "WRONGTYPE")
		r.must(r.Client.Del(t.Context(), keysOf(r.layout, r.Prefix, "empty").dead).Err())
	})
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(created)
	type answer struct {
		Age time.Duration
		OK  bool
	}
	for name, tc := range map[string]struct {
		depth pool.QueueDepth
		want  answer
	}{
		"empty":            {pool.QueueDepth{}, answer{0, true}},
		"old":              {pool.QueueDepth{Ready: 1, Oldest: now.Add(-time.Hour)}, answer{time.Hour, true}},
		"from the future":  {pool.QueueDepth{Ready: 1, Oldest: now.Add(time.Hour)}, answer{0, true}},
		"that of nobody":   {pool.QueueDepth{Ready: 1}, answer{0, false}},
		"beyond all times": {pool.QueueDepth{Ready: 1, Oldest: time.UnixMilli(-1 << 62)}, answer{1<<63 - 1, true}},
	} {
		var got answer
		got.Age, got.OK = tc.depth.Age(now)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
