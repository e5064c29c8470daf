package shard_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/shard"
)

func TestMain(m *testing.M) { testredis.Main(m) }

const (
	urn      = "urn:babel:orders:created"
	shards   = 4
	patience = 10 * time.Second
)

var layouts = []publisher.Layout{publisher.Legacy, publisher.Zset}

// target is a sharded queue of one layout on one server, looked at from the outside.
type target struct {
	shard.Config
	direct *redis.Client // for looking; Config.Client may go through a proxy
}

// each runs fn for both layouts on both servers.
func each(t *testing.T, fn func(t *testing.T, b testredis.Backend, at target)) {
	t.Helper()
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, b testredis.Backend) {
				fn(t, b, target{shard.Config{Config: publisher.Config{
					Client: b.Client, Queue: "orders", Layout: layout, KeyPrefix: b.Prefix, Logger: slog.New(slog.DiscardHandler),
				}, Shards: shards}, b.Client})
			})
		})
	}
}

func (at target) open(t testing.TB) *shard.Publisher {
	t.Helper()
	p, err := shard.New(at.Config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keyOf is the ready list of a shard.
func (at target) keyOf(name string) string {
	if at.Layout == publisher.Zset {
		return at.KeyPrefix + "queues:" + name
	}
	return at.KeyPrefix + name
}

// stored are the ids of what ready holds, by shard. What a shard holds must carry its name.
func (at target) stored(t *testing.T) [shards][]string {
	t.Helper()
	var all [shards][]string
	for i, name := range names(t, shards) {
		for _, text := range at.direct.LRange(t.Context(), at.keyOf(name), 0, -1).Val() {
			frame, _ := envelope.Unframe(text)
			e, err := envelope.Decode(frame.Body)
			if err != nil {
				t.Fatal(err)
			}
			if e.Meta.Queue != name {
				t.Errorf("meta.queue is %q in %q", e.Meta.Queue, name)
			}
			all[i] = append(all[i], e.Meta.ID)
		}
	}
	return all
}

func names(t testing.TB, n int) []string {
	t.Helper()
	all, err := shard.Names("orders", n)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// keyFor is a key of a shard.
func keyFor(place int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("customer-", i); shard.Of(key, shards) == place {
			return key
		}
	}
}
