package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
)

const (
	urn       = "urn:babel:orders:created"
	queue     = "orders"
	bodyBytes = 300 // of a whole envelope
)

func TestMain(m *testing.M) { testredis.Main(m) }

// rig is a private server and a client of it.
type rig struct {
	server *redisproc.Server
	client *redis.Client
}

// newRig starts a server. With AOF its file is written but not synced, so that its size can be read.
func newRig(b *testing.B, aof bool) *rig {
	b.Helper()
	server := testredis.Server(b, redisproc.Config{AppendOnly: aof, AppendFsync: "no"})
	client, err := pool.OpenRedis(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return &rig{server: server, client: client}
}

// store makes the store of the benchmark's queue.
func (r *rig) store(b *testing.B, layout flow.Layout) (lua.Store, lua.Keys) {
	b.Helper()
	keys, err := lua.NewKeys(layout, "", queue, "")
	if err != nil {
		b.Fatal(err)
	}
	return lua.New(layout, lua.Options{Client: r.client, Keys: keys, RetryAfter: time.Minute}), keys
}

// fill empties the server and puts n distinct messages in a list.
func (r *rig) fill(b *testing.B, key string, n int) {
	b.Helper()
	ctx := context.Background()
	if err := r.client.FlushAll(ctx).Err(); err != nil {
		b.Fatal(err)
	}
	const chunk = 1000
	for from := 0; from < n; from += chunk {
		values := make([]any, 0, chunk)
		for i := from; i < min(from+chunk, n); i++ {
			values = append(values, body(b, i, bodyBytes))
		}
		if err := r.client.RPush(ctx, key, values...).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

// body is an envelope of about size bytes.
func body(b testing.TB, i, size int) string {
	b.Helper()
	order := map[string]any{"order_id": i, "note": ""}
	e, err := envelope.New(urn, queue, order)
	if err != nil {
		b.Fatal(err)
	}
	order["note"] = strings.Repeat("x", max(0, size-len(e.Encode())))
	if e, err = envelope.New(urn, queue, order, envelope.WithID(e.Meta.ID), envelope.WithTraceID(e.TraceID)); err != nil {
		b.Fatal(err)
	}
	return e.Encode()
}

// measure runs work on n messages and reports what they cost. Filling the queue is not part of it.
func (r *rig) measure(b *testing.B, n int, work func()) {
	b.Helper()
	redisBefore, err := r.server.CPU()
	if err != nil {
		b.Fatal(err)
	}
	clientBefore, aofBefore := clientCPU(), r.aofBytes(b)
	start := time.Now()
	b.ResetTimer()
	work()
	b.StopTimer()
	took := time.Since(start)
	redisAfter, err := r.server.CPU()
	if err != nil {
		b.Fatal(err)
	}
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }
	b.ReportMetric(float64(n)/took.Seconds(), "msg/s")
	b.ReportMetric(per(redisAfter-redisBefore), "redis-µs/msg")
	b.ReportMetric(per(clientCPU()-clientBefore), "client-µs/msg")
	if size := r.aofBytes(b); size > 0 {
		b.ReportMetric(float64(size-aofBefore)/float64(n), "aof-B/msg")
	}
}

// aofBytes is the size of the append-only file, 0 where there is none.
func (r *rig) aofBytes(b *testing.B) int64 {
	b.Helper()
	info, err := r.client.Info(context.Background(), "persistence").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, "aof_current_size:"); ok {
			size, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return size
		}
	}
	return 0
}

// clientCPU is the CPU time of this process so far.
func clientCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(fmt.Errorf("bench: %w", err))
	}
}
