package bench

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/publisher"
)

// growProcesses is the number of processes that consume one queue. The time runs from the word to begin until
// the queue is empty and nothing is in flight; client-µs/msg is the CPU time of all of them.
func growProcesses(b *testing.B, layout flow.Layout, value int) {
	r := newRig(b, false)
	store, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N)
	all := r.children(b, value, childConfig{Layout: layout, Concurrency: concurrency, Prefetch: growthPrefetch},
		func(int) string { return queue })
	r.measure(b, b.N, func() {
		release(b, all)
		r.awaitDrained(b, store)
	})
	sum := stop(b, all)
	b.ReportMetric(float64(sum.CPU.Nanoseconds())/1e3/float64(b.N), "client-µs/msg")
	if sum.Acked != int64(b.N) {
		b.Fatalf("%d messages acked of %d", sum.Acked, b.N)
	}
}

// awaitDrained waits until nothing is ready and nothing in flight.
func (r *rig) awaitDrained(b *testing.B, store lua.Store) {
	b.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Hour)
	for {
		depth, err := store.Depth(context.Background())
		must(b, err)
		if depth.Ready == 0 && depth.InFlight == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			b.Fatal("the queue is not drained")
		}
	}
}

// growIdle is the number of pool processes that wait on empty queues of the same server beside one that works.
// client-µs/msg is that of the working one.
func growIdle(b *testing.B, layout flow.Layout, value int) {
	r := newRig(b, false)
	_, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N)
	idle := r.children(b, value, childConfig{Layout: layout, Concurrency: concurrency, Prefetch: growthPrefetch},
		func(i int) string { return "idle-" + strconv.Itoa(i) })
	release(b, idle)
	r.awaitBlocked(b, value)
	r.measure(b, b.N, func() { r.consume(b, oneQueue(layout, concurrency, growthPrefetch), b.N) })
	if sum := stop(b, idle); sum.Acked != 0 {
		b.Fatalf("idle processes acked %d messages", sum.Acked)
	}
}

// awaitBlocked waits until n connections block on empty queues.
func (r *rig) awaitBlocked(b *testing.B, n int) {
	b.Helper()
	testredis.Eventually(b, childPatience, func() bool {
		blocked, err := strconv.Atoi(r.info(b, "clients")["blocked_clients"])
		return err == nil && blocked >= n
	}, "%d connections are blocked", n)
}

// growTrickle is the number of pool processes that share one queue in which a message arrives every
// millisecond: nearly always all of them wait, and each message wakes some. redis-µs/msg holds publishing too.
func growTrickle(b *testing.B, layout flow.Layout, value int) {
	const most = 2000
	r := newRig(b, false)
	store, _ := r.store(b, layout)
	p, err := publisher.New(publisher.Config{Client: r.client, Queue: queue, Layout: layout})
	must(b, err)
	all := r.children(b, value, childConfig{Layout: layout, Concurrency: concurrency, Prefetch: growthPrefetch},
		func(int) string { return queue })
	release(b, all)
	r.awaitBlocked(b, value)
	n := min(b.N, most)
	r.measure(b, n, func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for i := range n {
			<-ticker.C
			_, err := p.Publish(context.Background(), urn, order{int64(i), note})
			must(b, err)
		}
		r.awaitDrained(b, store)
	})
	sum := stop(b, all)
	b.ReportMetric(float64(sum.CPU.Nanoseconds())/1e3/float64(n), "client-µs/msg")
	if sum.Acked != int64(n) {
		b.Fatalf("%d messages acked of %d", sum.Acked, n)
	}
}
