package handlertest

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// patience bounds every wait that is no assertion about time.
const patience = time.Minute

const (
	queue = "orders"
	urn   = "urn:babel:orders:created"
)

// rig is one queue on the shared server.
type rig struct {
	t       *testing.T
	layout  pool.Layout
	client  *redis.Client
	prefix  string
	publish *publisher.Publisher
	logs    *testlog.Recorder
}

// each runs fn in both layouts, side by side.
func each(t *testing.T, fn func(r *rig)) {
	t.Helper()
	t.Parallel()
	for _, layout := range []pool.Layout{pool.Legacy, pool.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			fn(newRig(t, layout))
		})
	}
}

func newRig(t *testing.T, layout pool.Layout) *rig {
	t.Helper()
	server := testredis.Shared(t)
	r := &rig{t: t, layout: layout, client: testredis.Client(t, server.URL()), prefix: testredis.Prefix(t), logs: &testlog.Recorder{}}
	var err error
	r.publish, err = publisher.New(publisher.Config{Client: r.client, Queue: queue, Layout: layout, KeyPrefix: r.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended
		keys, err := r.client.Keys(ctx, r.prefix+"*").Result()
		if err == nil && len(keys) > 0 {
			err = r.client.Del(ctx, keys...).Err()
		}
		if err != nil {
			t.Errorf("removing the test's keys: %v", err)
		}
	})
	return r
}

// send publishes one message.
func (r *rig) send(urn string, data any) {
	r.t.Helper()
	if _, err := r.publish.Publish(r.t.Context(), urn, data); err != nil {
		r.t.Fatal(err)
	}
}

// config is a pool on the queue; the test changes what it is about.
func (r *rig) config(handler delivery.Handler) pool.Config {
	cfg := pool.Config{
		Client: r.client, Queues: []pool.Queue{{Name: queue}}, Layout: r.layout, KeyPrefix: r.prefix, Handler: handler,
		Concurrency: 8, Prefetch: 64, MaxAttempts: 3, PollInterval: 100 * time.Millisecond, Logger: slog.New(r.logs),
	}
	if r.layout == pool.Legacy {
		cfg.LegacyRetry = pool.Requeue
	}
	return cfg
}

// running is a pool that runs until the test stops it or ends.
type running struct {
	*pool.Pool
	t      *testing.T
	cancel context.CancelFunc
	ended  chan error
	over   bool
}

func (r *rig) start(cfg pool.Config) *running {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &running{Pool: pool.New(cfg), t: r.t, cancel: cancel, ended: make(chan error, 1)}
	go func() { p.ended <- p.Run(ctx) }()
	r.t.Cleanup(p.stop)
	return p
}

// stop ends the pool and checks that it drains cleanly.
func (p *running) stop() {
	p.t.Helper()
	if p.over {
		return
	}
	p.over = true
	p.cancel()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("Run: %v", err)
		}
	case <-time.After(patience):
		p.t.Errorf("Run did not return within %v", patience)
	}
}

// stats are the counts of the pool's queue; zero before it has started.
func (p *running) stats() pool.QueueStats {
	if all := p.Stats().Queues; len(all) > 0 {
		return all[0]
	}
	return pool.QueueStats{}
}

// await waits until the pool's counts are as wanted.
func (p *running) await(what string, cond func(s pool.QueueStats) bool) {
	p.t.Helper()
	testredis.Eventually(p.t, patience, func() bool { return cond(p.stats()) }, "%s; counts %+v", what, p.stats())
}

// deadLetters reads the records of the queue.
func (r *rig) deadLetters() []envelope.DeadLetter {
	r.t.Helper()
	key := r.prefix + queue + ".dlq"
	if r.layout == pool.Zset {
		key = r.prefix + "queues:" + queue + ".dlq"
	}
	texts, err := r.client.LRange(r.t.Context(), key, 0, -1).Result()
	if err != nil {
		r.t.Fatal(err)
	}
	var all []envelope.DeadLetter
	for _, text := range texts {
		var record struct {
			Dead struct {
				Reason, Error, Exception string
				Attempts                 int64
			} `json:"dead_letter"`
		}
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			r.t.Fatal(err)
		}
		d := record.Dead
		all = append(all, envelope.DeadLetter{Reason: d.Reason, Error: &d.Error, Exception: &d.Exception, Attempts: d.Attempts})
	}
	return all
}

// left counts what is in the queue's places: everything but dead letters.
func (r *rig) left() int64 {
	r.t.Helper()
	keys, err := r.client.Keys(r.t.Context(), r.prefix+"*").Result()
	if err != nil {
		r.t.Fatal(err)
	}
	var n int64
	for _, key := range keys {
		switch rest := key[len(r.prefix):]; rest {
		case queue, queue + ":processing", "queues:" + queue:
			n += r.client.LLen(r.t.Context(), key).Val()
		case "queues:" + queue + ":delayed", "queues:" + queue + ":reserved":
			n += r.client.ZCard(r.t.Context(), key).Val()
		}
	}
	return n
}
