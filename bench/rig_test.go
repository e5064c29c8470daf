package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// both are the layouts, in the order of every table.
var both = []flow.Layout{flow.Legacy, flow.Zset}

// TestMain runs the tests, or, in a process that a benchmark started, a consumer.
func TestMain(m *testing.M) {
	if config := os.Getenv(childEnv); config != "" {
		os.Exit(childMain(config))
	}
	testredis.Main(m)
}

// rig is a private server and a client of it.
type rig struct {
	server *redisproc.Server
	client *redis.Client
}

// newRig starts a server. With AOF its file is written but not synced, and never rewritten, so that the growth of
// its size is what was written.
func newRig(tb testing.TB, aof bool) *rig {
	tb.Helper()
	r := &rig{server: testredis.Server(tb, redisproc.Config{
		AppendOnly: aof, AppendFsync: "no", Args: []string{"--auto-aof-rewrite-percentage", "0"},
	})}
	r.client = r.connect(tb)
	return r
}

// connect makes one more client, for what must not share connections with the rest.
func (r *rig) connect(tb testing.TB) *redis.Client {
	tb.Helper()
	client, err := pool.OpenRedis(r.server.URL())
	must(tb, err)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// store makes the store of the benchmark's queue. The lease outlasts every benchmark.
func (r *rig) store(tb testing.TB, layout flow.Layout) (lua.Store, lua.Keys) {
	tb.Helper()
	keys := keysOf(tb, layout, queue)
	return lua.New(layout, lua.Options{Client: r.client, Keys: keys, RetryAfter: time.Hour}), keys
}

func keysOf(tb testing.TB, layout flow.Layout, name string) lua.Keys {
	tb.Helper()
	keys, err := lua.NewKeys(layout, "", name, "")
	must(tb, err)
	return keys
}

// fill empties the server and puts n distinct messages in a list.
func (r *rig) fill(tb testing.TB, key string, n int) {
	tb.Helper()
	must(tb, r.client.FlushAll(context.Background()).Err())
	r.push(tb, key, newBodies(tb, bodyBytes), n)
}

// measure runs work on n messages and reports what they cost. Filling the queue is not part of it.
func (r *rig) measure(b *testing.B, n int, work func()) {
	b.Helper()
	r.measureSome(b, func() int { work(); return n })
}

// measureSome is measure for work that tells how many messages it did.
func (r *rig) measureSome(b *testing.B, work func() int) {
	b.Helper()
	redisBefore, clientBefore, aofBefore := r.cpu(b), clientCPU(), r.aofBytes(b)
	start := time.Now()
	b.ResetTimer()
	n := work()
	b.StopTimer()
	took, client := time.Since(start), clientCPU()-clientBefore
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }
	b.ReportMetric(float64(took.Nanoseconds())/float64(n), "ns/op") // n need not be b.N
	b.ReportMetric(float64(n)/took.Seconds(), "msg/s")
	b.ReportMetric(per(r.cpu(b)-redisBefore), "redis-µs/msg")
	b.ReportMetric(per(client), "client-µs/msg")
	if size := r.aofBytes(b); size > 0 {
		b.ReportMetric(float64(size-aofBefore)/float64(n), "aof-B/msg")
	}
}

// cpu is the CPU time of the server so far, as it tells itself: the kernel's table, which asks nothing of the
// server, has steps of 10 ms.
func (r *rig) cpu(tb testing.TB) time.Duration {
	tb.Helper()
	info := r.info(tb, "cpu")
	var used float64
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info[name], 64)
		must(tb, err)
		used += seconds
	}
	return time.Duration(used * float64(time.Second))
}

// aofBytes is the size of the append-only file, 0 where there is none.
func (r *rig) aofBytes(tb testing.TB) int64 {
	tb.Helper()
	text, ok := r.info(tb, "persistence")["aof_current_size"]
	if !ok {
		return 0
	}
	size, err := strconv.ParseInt(text, 10, 64)
	must(tb, err)
	return size
}

// info is one section of INFO.
func (r *rig) info(tb testing.TB, section string) map[string]string {
	tb.Helper()
	text, err := r.client.Info(context.Background(), section).Result()
	must(tb, err)
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// clientCPU is the CPU time of this process so far.
func clientCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(fmt.Errorf("bench: %w", err))
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
