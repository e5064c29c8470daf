package bench

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/pool"
)

const (
	growthPrefetch = 1024
	settleBatch    = 1000 // the most a pool settles with one call
)

// growth is what may grow while the cost of a message should not. The names of the benchmarks are the rows of
// published tables: they stay as they are.
var growth = []struct {
	what    string
	layouts []flow.Layout
	values  []int
	run     func(b *testing.B, layout flow.Layout, value int)
}{
	{"backlog", both, []int{10_000, 100_000, 1_000_000}, growBacklog},
	{"delayed", []flow.Layout{flow.Zset}, []int{0, 200_000}, growDelayed},
	{"reserved", both, []int{0, 200_000}, growReserved},
	{"inflight", both, []int{500, 5_000, 20_000}, growInFlight},
	{"body", both, []int{bodyBytes, 10_000, 1_000_000}, growBody},
	{"concurrency", both, []int{1, 16, 64, 256, 1000}, growConcurrency},
	{"queues", both, []int{1, 10, 50}, growQueues},
	{"processes", both, []int{1, 2, 4}, growProcesses},
	{"idle", both, []int{0, 4, 8}, growIdle},
	{"trickle", both, []int{1, 5, 9}, growTrickle},
}

// BenchmarkGrowth consumes b.N messages while one thing is small and large. Each value has a server of its own.
func BenchmarkGrowth(b *testing.B) {
	for _, g := range growth {
		for _, layout := range g.layouts {
			for _, value := range g.values {
				name := strings.Join([]string{g.what, layout.String(), strconv.Itoa(value)}, "/")
				b.Run(name, func(b *testing.B) { g.run(b, layout, value) })
			}
		}
	}
}

// short is true for a run that shall only show that the benchmark works.
func short(b *testing.B) bool { return b.N < 1000 }

// scaled is the value, or a hundredth of it where filling would take longer than the run.
func scaled(b *testing.B, value int) int {
	if short(b) {
		return value / 100
	}
	return value
}

// growBacklog is the number of messages that stay in ready behind those that are consumed.
func growBacklog(b *testing.B, layout flow.Layout, value int) {
	r := newRig(b, false)
	_, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N+scaled(b, value))
	r.measure(b, b.N, func() { r.consume(b, oneQueue(layout, concurrency, growthPrefetch), b.N) })
}

// farFuture is a score that no run reaches.
const farFuture = 1 << 40

// growDelayed is the number of delayed messages.
func growDelayed(b *testing.B, layout flow.Layout, value int) {
	r := newRig(b, false)
	_, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N)
	r.wait(b, keys.Delayed, newBodies(b, bodyBytes+1), scaled(b, value), "")
	r.measure(b, b.N, func() { r.consume(b, oneQueue(layout, concurrency, growthPrefetch), b.N) })
}

// growReserved is the number of messages that other consumers have reserved and do not finish.
func growReserved(b *testing.B, layout flow.Layout, value int) {
	r := newRig(b, false)
	_, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N)
	others := newBodies(b, bodyBytes+1) // another size, so none is equal to a ready one
	if layout == flow.Legacy {
		r.push(b, keys.Processing, others, scaled(b, value))
		r.wait(b, keys.Deadlines, others, scaled(b, value), strings.Repeat("0", 31)+"1:")
	} else {
		r.wait(b, keys.Reserved, others, scaled(b, value), "")
	}
	// What is slow here is slow by orders of magnitude: a part of the messages shows it as well.
	const limit = 15 * time.Second
	r.measureSome(b, func() int {
		return max(1, r.consumeWithin(b, oneQueue(layout, concurrency, growthPrefetch), b.N, limit))
	})
}

// wait puts n members with a score in the far future in a sorted set.
func (r *rig) wait(b *testing.B, key string, texts bodies, n int, prefix string) {
	b.Helper()
	r.inPipelines(b, texts, n, func(values []any) []any {
		words := append(make([]any, 0, 2+2*len(values)), "zadd", key)
		for _, value := range values {
			words = append(words, farFuture, prefix+value.(string))
		}
		return words
	})
}

// growInFlight is the number of messages one consumer holds, which it acks in random order. The scripts alone are
// measured: what it costs to find a message among so many. As in a pool, a batch is what has piled up, here at most
// half of what is held, and is sent in the order of reservation.
func growInFlight(b *testing.B, layout flow.Layout, value int) {
	r := newRig(b, true)
	store, keys := r.store(b, layout)
	value = max(1, scaled(b, value))
	r.fill(b, keys.Ready, b.N+value)
	held := reserveMore(b, store, nil, value, settleBatch)
	random := rand.New(rand.NewPCG(1, 2))
	r.measure(b, b.N, func() {
		for left := b.N; left > 0; {
			n := min(settleBatch, left, max(1, len(held)/2))
			settled := make([]flow.Settlement, n)
			for i := range settled {
				at, last := random.IntN(len(held)), len(held)-1
				settled[i].Reservation = held[at]
				held[at], held = held[last], held[:last]
			}
			slices.SortFunc(settled, func(x, y flow.Settlement) int {
				return strings.Compare(x.Reservation.Handle, y.Reservation.Handle)
			})
			results, err := store.Settle(context.Background(), settled)
			must(b, err)
			for i, result := range results {
				if result != flow.Done {
					b.Fatalf("message %d: result %d", i, result)
				}
			}
			held = reserveMore(b, store, held, value, settleBatch)
			left -= n
		}
	})
}

// growConcurrency is the number of workers.
func growConcurrency(b *testing.B, layout flow.Layout, value int) {
	r := newRig(b, false)
	_, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N)
	r.measure(b, b.N, func() { r.consume(b, oneQueue(layout, value, max(growthPrefetch, 4*value)), b.N) })
}

// growQueues is the number of queues of one pool, each with an equal share of the messages.
func growQueues(b *testing.B, layout flow.Layout, value int) {
	r := newRig(b, false)
	cfg := pool.Config{Layout: layout, Concurrency: concurrency, Prefetch: growthPrefetch}
	texts := newBodies(b, bodyBytes)
	for i := range value {
		name := queue + "-" + strconv.Itoa(i)
		cfg.Queues = append(cfg.Queues, pool.Queue{Name: name})
		r.push(b, keysOf(b, layout, name).Ready, texts, b.N*(i+1)/value-b.N*i/value)
	}
	r.measure(b, b.N, func() { r.consume(b, cfg, b.N) })
}
