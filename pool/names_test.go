package pool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
)

// TestQueueNames covers R4: names that end like a queue's own keys are refused, others are not.
func TestQueueNames(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{
		"": true, "a:processing": true, "a:processing:deadlines": true, "a:delayed": true, "a:reserved": true,
		"a:notify": true, "a:paused": true, "a:recoveries": true, ":notify": true,
		"a.dlq": false, "a": false, "notify": false, "a:notify:b": false, "a:deadlines": false, "ü x": false, "a.dlq.dlq": false,
	} {
		for _, layout := range []pool.Layout{pool.Legacy, pool.Zset} {
			cfg := valid(t)
			cfg.Layout, cfg.Queues[0].Name = layout, name
			if !refused {
				if _, err := pool.FillIn(cfg); err != nil {
					t.Errorf("%v %q: %v", layout, name, err)
				}
				continue
			}
			wantWords(t, problem(t, cfg), "Queues[0].Name", lua.ErrQueueName.Error(), "(R4)")
		}
	}
}

// TestKeyPrefixes covers R3: no whole hash tag in a prefix.
func TestKeyPrefixes(t *testing.T) {
	t.Parallel()
	for prefix, refused := range map[string]bool{
		"{app}": true, "x{app}:": true, "{a}{b}": true, "app:": false, "laravel-database-": false, "{}": false, "{": false, "}": false, "a}b{": false,
	} {
		cfg := valid(t)
		cfg.KeyPrefix = prefix
		if !refused {
			if _, err := pool.FillIn(cfg); err != nil {
				t.Errorf("%q: %v", prefix, err)
			}
			continue
		}
		wantWords(t, problem(t, cfg), lua.ErrKeyPrefix.Error(), "put the tag in the queue's name")
	}
}

// TestDeadLetterKeys covers D1: a key of its own is taken unless it is another key of a queue.
func TestDeadLetterKeys(t *testing.T) {
	t.Parallel()
	queues := func(key string) []pool.Queue {
		return []pool.Queue{{Name: "a", DeadLetterKey: key}, {Name: "b"}, {Name: "c", Layout: pool.Zset, DeadLetterKey: key}, {Name: "d", Layout: pool.Zset}}
	}
	for key, refused := range map[string]bool{
		"app:a": true, "app:a:processing": true, "app:a:processing:deadlines": true, "app:a:paused": true, "app:a:recoveries": true,
		"app:b": true, "app:b:processing": true, "app:b:processing:deadlines": true, "app:b:paused": true, "app:b:recoveries": true,
		"app:queues:c": true, "app:queues:c:delayed": true, "app:queues:c:reserved": true, "app:queues:c:notify": true,
		"app:queues:d": true, "app:queues:d:delayed": true, "app:queues:d:reserved": true, "app:queues:d:notify": true,
		"app:queues:d.dlq:notify": true, // records are no tokens
		"a":                       false, "a.dlq": false, "app:b.dlq": false, "graveyard": false, "app:a.dlq": false,
	} {
		cfg := valid(t)
		cfg.KeyPrefix, cfg.Queues = "app:", queues(key)
		if !refused {
			if _, err := pool.FillIn(cfg); err != nil {
				t.Errorf("%q: %v", key, err)
			}
			continue
		}
		wantWords(t, problem(t, cfg), "DeadLetterKey", lua.ErrDeadLetterKey.Error(), "(D1)", key)
	}
}

// onCluster makes a config for a cluster nobody connects to.
func onCluster(t *testing.T, q pool.Queue) pool.Config {
	t.Helper()
	cfg := valid(t)
	cfg.Client = closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}))
	cfg.Queues = []pool.Queue{q}
	return cfg
}

// TestSlots covers R3 and B45: on a cluster all keys of a queue must share a slot.
func TestSlots(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{
		"orders": true, "{}": true, "a}b{": true, "a{}b": true, "ü": true, "{orders": true,
		"{orders}": false, "a{b}c": false, "{ü}": false, "{a}{b}": false,
	} {
		for _, layout := range []pool.Layout{pool.Legacy, pool.Zset} {
			cfg := onCluster(t, pool.Queue{Name: name, Layout: layout})
			cfg.KeyPrefix = "app:"
			if !refused {
				if _, err := pool.FillIn(cfg); err != nil {
					t.Errorf("%v %q: %v", layout, name, err)
				}
				continue
			}
			wantWords(t, problem(t, cfg), "Queues[0].Name", "in different cluster slots", "put a hash tag in the queue's name")
		}
	}
	wantWords(t, problem(t, onCluster(t, pool.Queue{Name: "orders"})), "for instance \"{orders}\"")

	// D1: the dead letter key is one of them.
	wantWords(t, problem(t, onCluster(t, pool.Queue{Name: "{orders}", DeadLetterKey: "graveyard"})), `"graveyard"`)
	if _, err := pool.FillIn(onCluster(t, pool.Queue{Name: "{orders}", DeadLetterKey: "graveyard:{orders}"})); err != nil {
		t.Error(err)
	}
}

// TestCluster runs a pool with a tagged queue on a cluster of one node (R3, B45).
func TestCluster(t *testing.T) {
	t.Parallel()
	node := testredis.Server(t, redisproc.Config{Args: []string{"--cluster-enabled", "yes"}})
	direct := testredis.Client(t, node.Addr())
	if err := direct.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, patience, func() bool {
		return strings.Contains(direct.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	}, "the cluster is up")
	for _, layout := range []pool.Layout{pool.Legacy, pool.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, testredis.Backend{Client: direct, Prefix: testredis.Prefix(t)}, layout)
			r.keys = keysOf(layout, r.Prefix, "{orders}")
			cfg := r.config(fails(errBoom, 1))
			cfg.Client = closing(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.Addr()}}))
			cfg.Queues, cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = []pool.Queue{{Name: "{orders}"}}, 2, pool.Requeue, ptr(0.0)
			r.push(bodies(50)...)
			r.push(`{"no":"envelope"}`)
			p := r.start(cfg)
			s := r.await("50 are acked", func(s state) bool {
				return len(s.Ready)+len(s.InFlight)+len(s.Delayed) == 0 && p.stats().Acked == 50
			})
			wantEqual(t, "dead letters", len(s.Dead), 1)
		})
	}
}

// fails makes a handler that fails the first n deliveries of each message and acks the next.
func fails(err error, n int64) delivery.Handler {
	return function(func(_ context.Context, d *delivery.Delivery) error {
		if d.Number <= n {
			return err
		}
		return nil
	})
}
