package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/shard"
)

const shardCount = 12

// masters are the servers of a sharded queue and a client of them all.
type masters struct {
	client redis.UniversalClient
	each   []*redis.Client
}

func oneMaster(tb testing.TB) *masters {
	tb.Helper()
	r := newRig(tb, false)
	return &masters{client: r.client, each: []*redis.Client{r.connect(tb)}}
}

func threeMasters(tb testing.TB) *masters {
	tb.Helper()
	cluster := testredis.Cluster(tb, redisproc.ClusterConfig{})
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), ContextTimeoutEnabled: true, PoolSize: 128,
	})
	tb.Cleanup(func() { _ = client.Close() })
	m := &masters{client: client}
	for _, addr := range cluster.Addrs() {
		m.each = append(m.each, testredis.Client(tb, addr))
	}
	return m
}

// cpu is the CPU time of each master so far.
func (m *masters) cpu(tb testing.TB) []time.Duration {
	tb.Helper()
	all := make([]time.Duration, len(m.each))
	for i, client := range m.each {
		text, err := client.Info(context.Background(), "cpu").Result()
		must(tb, err)
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "used_cpu_user" || name == "used_cpu_sys" {
				seconds, err := strconv.ParseFloat(value, 64)
				must(tb, err)
				all[i] += time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return all
}

func (m *masters) empty(tb testing.TB) {
	tb.Helper()
	for _, client := range m.each {
		must(tb, client.FlushAll(context.Background()).Err())
	}
}

// measure runs work on n messages. Beside what all masters spend on a message it tells what the busiest spends, by which
// the whole is bounded where each has a processor of its own.
func (m *masters) measure(b *testing.B, n int, work func()) {
	b.Helper()
	before, client, start := m.cpu(b), clientCPU(), time.Now()
	b.ResetTimer()
	work()
	b.StopTimer()
	took, used := time.Since(start), clientCPU()-client
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }
	var sum, busiest time.Duration
	for i, after := range m.cpu(b) {
		sum += after - before[i]
		busiest = max(busiest, after-before[i])
	}
	b.ReportMetric(float64(n)/took.Seconds(), "msg/s")
	b.ReportMetric(per(sum), "redis-µs/msg")
	b.ReportMetric(per(busiest), "busiest-µs/msg")
	b.ReportMetric(per(used), "client-µs/msg")
}

// BenchmarkShards compares one queue with twelve shards of it, on one master and on three. The machine's processors are
// shared by all masters and the client: what three masters gain shows in busiest-µs/msg and not in msg/s.
func BenchmarkShards(b *testing.B) {
	for _, layout := range both {
		for _, c := range []struct {
			masters, shards int
			open            func(testing.TB) *masters
		}{{1, 1, oneMaster}, {1, shardCount, oneMaster}, {3, shardCount, threeMasters}} {
			b.Run(fmt.Sprintf("%s/masters=%d/shards=%d", layout, c.masters, c.shards), func(b *testing.B) {
				m := c.open(b)
				p, err := shard.New(shard.Config{
					Config: publisher.Config{Client: m.client, Queue: queue, Layout: layout}, Shards: c.shards,
				})
				must(b, err)
				b.Run("batch=256", func(b *testing.B) {
					m.empty(b)
					m.measure(b, b.N, func() { publishAll(b, p, b.N) })
				})
				b.Run("routines=64", func(b *testing.B) {
					m.empty(b)
					m.measure(b, b.N, func() {
						inRoutines(b, func() error {
							_, err := p.Publish(context.Background(), urn, order{1, note})
							return err
						})
					})
				})
				for _, prefetch := range []int{256, 1024, 4096} {
					b.Run(fmt.Sprintf("consume/prefetch=%d", prefetch), func(b *testing.B) {
						m.empty(b)
						publishAll(b, p, b.N)
						m.consume(b, layout, p.Names(), prefetch)
					})
				}
			})
		}
	}
}

func publishAll(b *testing.B, p *shard.Publisher, n int) {
	b.Helper()
	messages := make([]publisher.Message, publishBatch)
	for i := range messages {
		messages[i] = publisher.Message{URN: urn, Data: order{int64(i), note}}
	}
	for ; n > 0; n -= publishBatch {
		_, err := p.PublishBatch(context.Background(), messages[:min(n, publishBatch)])
		must(b, err)
	}
}

// consume empties the shards, and tells how many messages a call carried on average.
func (m *masters) consume(b *testing.B, layout flow.Layout, names []string, prefetch int) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var handledSoFar, calls, carried atomic.Int64
	p := pool.New(pool.Config{
		Client: m.client, Queues: shard.Queues(pool.Queue{}, names), Layout: layout, Concurrency: concurrency, Prefetch: prefetch,
		Logger: slog.New(slog.DiscardHandler),
		Handler: handled(func(order) {
			if handledSoFar.Add(1) == int64(b.N) {
				cancel()
			}
		}),
		OnCall: func(c pool.Call) {
			if c.Op == pool.CallReserve && c.Messages > 0 {
				calls.Add(1)
				carried.Add(int64(c.Messages))
			}
		},
	})
	m.measure(b, b.N, func() { must(b, p.Run(ctx)) })
	if acked := ackedBy(p); acked != int64(b.N) {
		b.Fatalf("%d messages acked of %d", acked, b.N)
	}
	b.ReportMetric(float64(carried.Load())/float64(calls.Load()), "msg/reserve")
}
