package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/metrics"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

const (
	good = "urn:babel:orders:created"
	bad  = "urn:babel:orders:cancelled"
)

func body(id int, urn string, createdAt time.Time) string {
	return fmt.Sprintf(`{"job":%q,"trace_id":"t","data":{},"meta":{"id":"%d","queue":"orders","lang":"go","schema_version":1,`+
		`"created_at":%d},"attempts":0}`, urn, id, createdAt.UnixMilli())
}

// each runs fn on both servers in both layouts; key is the list of ready messages.
func each(t *testing.T, fn func(t *testing.T, b testredis.Backend, layout pool.Layout, key string)) {
	t.Helper()
	for _, layout := range []pool.Layout{pool.Legacy, pool.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, b testredis.Backend) {
				key := b.Prefix + "orders"
				if layout == pool.Zset {
					key = b.Prefix + "queues:orders"
				}
				fn(t, b, layout, key)
			})
		})
	}
}

// TestAPool: what a pool does and holds can be read at a scrape.
func TestAPool(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b testredis.Backend, layout pool.Layout, key string) {
		hold, holding := make(chan struct{}), make(chan struct{}, 1)
		mux := router.NewMux()
		mux.Register(good, function(func(d *delivery.Delivery) error {
			if d.Meta.ID == "100" {
				holding <- struct{}{}
				<-hold
			}
			return nil
		}))
		mux.Register(bad, function(func(*delivery.Delivery) error { return delivery.DeadLetter(errBoom) }))
		mux.Register("urn:panics", function(func(*delivery.Delivery) error { panic(delivery.DeadLetter(errBoom)) }))
		now := time.Now()
		values := []any{
			body(0, good, now), body(1, good, now), body(2, good, now), body(3, bad, now), body(4, bad, now), body(5, "urn:panics", now),
			body(6, "urn:unheard", now), "poison",
		}
		if err := b.Client.RPush(t.Context(), key, values...).Err(); err != nil {
			t.Fatal(err)
		}
		p, registry := start(t, metrics.New(metrics.Config{}), pool.Config{
			Client: b.Client, KeyPrefix: b.Prefix, Queues: []pool.Queue{{Name: "orders"}}, Layout: layout, Handler: mux,
			Concurrency: 1, Prefetch: 8,
		})
		defer close(hold)
		testredis.Eventually(t, patience, func() bool {
			s := p.Stats()
			return len(s.Queues) == 1 && s.Queues[0].Acked == 3 && s.Queues[0].DeadLettered == 5
		}, "all are settled")
		if err := b.Client.RPush(t.Context(), key, body(100, good, now)).Err(); err != nil {
			t.Fatal(err)
		}
		<-holding
		if err := b.Client.RPush(t.Context(), key+".dlq", "one more").Err(); err != nil {
			t.Fatal(err)
		}

		f := gather(t, registry)
		labels := []string{"queue", "orders", "layout", layout.String()}
		of := func(more ...string) []string { return append(append([]string{}, labels...), more...) }
		want(t, f, 3, "babelpool_messages_total", of("outcome", "acked")...)
		want(t, f, 5, "babelpool_messages_total", of("outcome", "dead_lettered")...)
		want(t, f, 3, "babelpool_dead_letters_total", of("reason", "failed")...)
		want(t, f, 1, "babelpool_dead_letters_total", of("reason", "unknown_urn")...)
		want(t, f, 1, "babelpool_dead_letters_total", of("reason", "poison")...)
		want(t, f, 3, "babelpool_handler_failures_total", labels...)
		want(t, f, 1, "babelpool_handler_panics_total", labels...)
		reserved := 9.0
		if layout == pool.Zset {
			reserved-- // the poison: its attempts cannot be raised, so it is dead-lettered unreserved (Z3)
		}
		want(t, f, reserved, "babelpool_messages_reserved_total", labels...)
		want(t, f, 0, "babelpool_redis_away_seconds", labels...)
		want(t, f, 3, "babelpool_handler_duration_seconds", "urn", good, "outcome", "success")
		want(t, f, 2, "babelpool_handler_duration_seconds", "urn", bad, "outcome", "failure")
		want(t, f, 1, "babelpool_handler_duration_seconds", "urn", "urn:panics", "outcome", "panic")
		if _, ok := value(f, "babelpool_handler_duration_seconds", "urn", "urn:unheard", "outcome", "failure"); ok {
			t.Error("a URN without a handler has a series")
		}
		want(t, f, 0, "babelpool_queue_messages", of("state", "ready")...)
		want(t, f, 1, "babelpool_queue_messages", of("state", "in_flight")...)
		want(t, f, 6, "babelpool_queue_messages", of("state", "dead_letter")...)
		want(t, f, 0, "babelpool_oldest_ready_age_seconds", labels...)
		want(t, f, 1, "babelpool_depth_up", labels...)
		want(t, f, 1, "babelpool_busy_workers")
		want(t, f, 1, "babelpool_workers")
		want(t, f, 8, "babelpool_slots")
		want(t, f, 1, "babelpool_live")
		want(t, f, 1, "babelpool_ready")
		for name, least := range map[string]float64{"reserve": 2, "settle": 1} {
			if n, ok := value(f, "babelpool_redis_call_duration_seconds", "layout", layout.String(), "op", name); !ok || n < least {
				t.Errorf("%v calls of %s", n, name)
			}
			if n, ok := value(f, "babelpool_redis_call_messages", "layout", layout.String(), "op", name); !ok || n < 1 {
				t.Errorf("%v calls of %s with messages", n, name)
			}
		}
	})
}

// TestTheNamesAreFit for Prometheus: by its own linter, over a scrape in which everything has a series.
func TestTheNamesAreFit(t *testing.T) {
	t.Parallel()
	m, s := everything()
	problems, err := testutil.GatherAndLint(registered(t, m, s))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for name, f := range gather(t, registered(t, m, s)) {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
	}
}

// everything is metrics and a source of which every metric has a series.
func everything() (*metrics.Metrics, *source) {
	m := metrics.New(metrics.Config{})
	for _, err := range []error{nil, errBoom} {
		_ = m.Middleware(function(func(*delivery.Delivery) error { return err })).Handle(nil, delivered(good)) //nolint:staticcheck // needs none
		m.OnCall(pool.Call{Queue: "orders", Layout: pool.Legacy, Op: pool.CallSettle, Messages: 7, Took: time.Millisecond, Err: err})
	}
	return m, &source{
		stats:  pool.Stats{Held: 7, Prefetch: 10, Queues: []pool.QueueStats{{Name: "orders", Layout: pool.Legacy}}},
		health: pool.Health{Live: true, Queues: []pool.QueueHealth{{Name: "orders", Layout: pool.Legacy, Away: time.Minute}}},
		depths: []pool.QueueDepth{{Name: "orders", Layout: pool.Legacy}},
	}
}

// TestAScrapeOfWhatIsNotThere: before Run, without an answer of Redis, with a head that does not tell its age.
func TestAScrapeOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	p := pool.New(pool.Config{})
	f := gather(t, registered(t, metrics.New(metrics.Config{}), p))
	want(t, f, 1, "babelpool_live")
	want(t, f, 0, "babelpool_ready")
	if f["babelpool_messages_total"] != nil || f["babelpool_depth_up"] != nil {
		t.Error("queues before Run")
	}

	s := &source{
		stats:  pool.Stats{Held: 3, Prefetch: 10, Queues: []pool.QueueStats{{Name: "a", Layout: pool.Legacy}, {Name: "a", Layout: pool.Zset}}},
		depths: []pool.QueueDepth{{Name: "a", Layout: pool.Zset, Ready: 1}},
		err:    errBoom,
	}
	f = gather(t, registered(t, metrics.New(metrics.Config{}), s))
	want(t, f, 0, "babelpool_depth_up", "queue", "a", "layout", "legacy")
	want(t, f, 1, "babelpool_depth_up", "queue", "a", "layout", "zset")
	want(t, f, 1, "babelpool_queue_messages", "queue", "a", "layout", "zset", "state", "ready")
	want(t, f, 7, "babelpool_free_slots")
	if _, ok := value(f, "babelpool_oldest_ready_age_seconds", "queue", "a", "layout", "zset"); ok {
		t.Error("an age that nobody knows")
	}

	s.depths = []pool.QueueDepth{{Name: "a", Layout: pool.Zset, Ready: 1, Oldest: time.Now().Add(-time.Hour)}}
	f = gather(t, registered(t, metrics.New(metrics.Config{}), s))
	if age, _ := value(f, "babelpool_oldest_ready_age_seconds", "queue", "a", "layout", "zset"); age < 3600 || age > 3700 {
		t.Errorf("an age of %v s", age)
	}
	if f = gather(t, registered(t, metrics.New(metrics.Config{NoDepths: true}), s)); f["babelpool_depth_up"] != nil {
		t.Error("Redis was asked")
	}
}

// TestASilentRedisHoldsNoScrapeUp beyond the limit.
func TestASilentRedisHoldsNoScrapeUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b testredis.Backend, layout pool.Layout, _ string) {
		proxy := faultproxy.Start(t, b.Addr)
		_, registry := start(t, metrics.New(metrics.Config{DepthTimeout: 200 * time.Millisecond}), pool.Config{
			Client: testredis.Client(t, b.Via(proxy.Addr())), KeyPrefix: b.Prefix, Queues: []pool.Queue{{Name: "orders"}}, Layout: layout,
			Handler: function(func(*delivery.Delivery) error { return nil }),
		})
		labels := []string{"queue", "orders", "layout", layout.String()}
		testredis.Eventually(t, patience, func() bool {
			up, _ := value(gather(t, registry), "babelpool_depth_up", labels...)
			return up == 1
		}, "it runs")
		proxy.Blackhole(true)
		began := time.Now()
		f := gather(t, registry)
		if took := time.Since(began); took > 3*time.Second { // 0.2 s is promised; the machine may be busy
			t.Errorf("a scrape took %s", took)
		}
		want(t, f, 0, "babelpool_depth_up", labels...)
		want(t, f, 1, "babelpool_live")
		proxy.Blackhole(false)
	})
}

// TestInstrument leaves the caller's config alone, and calls the caller's OnCall.
func TestInstrument(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	ran, told := 0, 0
	h := function(func(*delivery.Delivery) error { ran++; return nil })
	cfg := pool.Config{Handler: h, Queues: []pool.Queue{{Name: "a", Handler: h}, {Name: "b"}}, OnCall: func(pool.Call) { told++ }}
	got := m.Instrument(cfg)
	if got.Queues[1].Handler != nil || fmt.Sprintf("%T", cfg.Queues[0].Handler) != fmt.Sprintf("%T", h) {
		t.Error("handlers that were not there, or the caller's were changed")
	}
	for _, handler := range []delivery.Handler{got.Handler, got.Queues[0].Handler} {
		if err := handler.Handle(t.Context(), delivered(good)); err != nil {
			t.Error(err)
		}
	}
	got.OnCall(pool.Call{Layout: pool.Zset, Op: pool.CallSettle})
	f := gather(t, registered(t, m, &source{}))
	want(t, f, 2, "babelpool_handler_duration_seconds", "urn", good, "outcome", "success")
	want(t, f, 1, "babelpool_redis_call_duration_seconds", "layout", "zset", "op", "settle")
	if ran != 2 || told != 1 {
		t.Errorf("ran %d, told %d", ran, told)
	}
	if empty := m.Instrument(pool.Config{}); empty.Handler != nil {
		t.Error("a handler out of nothing")
	}
}
