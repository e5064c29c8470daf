package bench

import (
	"context"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

const (
	bodyTotal      = 400_000_000 // bytes of bodies in one run, at most
	bodyTotalShort = 20_000_000
	inFlightBytes  = 64 << 20 // the default of Config.MaxInFlightBytes
	mega           = 1e6
)

// growBody is the size of a message. Large messages are fewer, so that the bytes stay the same. Beside MB/s it
// reports the most bytes of bodies that were reserved at once, the bound that they should keep, and the most
// memory of the process: live objects and those not collected yet, above what there was before.
func growBody(b *testing.B, layout flow.Layout, value int) {
	r := newRig(b, false)
	store, keys := r.store(b, layout)
	total := bodyTotal
	if short(b) {
		total = bodyTotalShort
	}
	n := max(1, min(b.N, total/value))
	r.push(b, keys.Ready, newBodies(b, value), n)
	runtime.GC()
	before := heapObjects()
	var heap uint64
	var held int64
	r.measure(b, n, func() {
		stop := every(time.Millisecond, func() { heap = max(heap, heapObjects()) })
		defer stop()
		// A look at the server costs both sides a little; every fifth millisecond is enough to see the peak.
		defer every(5*time.Millisecond, func() {
			if depth, err := store.Depth(context.Background()); err == nil {
				held = max(held, depth.InFlight)
			}
		})()
		r.consume(b, oneQueue(layout, concurrency, growthPrefetch), n)
	})
	b.ReportMetric(float64(n)*float64(value)/mega/b.Elapsed().Seconds(), "MB/s")
	b.ReportMetric(float64(held)*float64(value)/mega, "peak-held-MB")
	b.ReportMetric(float64(inFlightBytes+value)/mega, "bound-MB")
	b.ReportMetric((float64(heap)-float64(before))/mega, "peak-heap-MB")
}

// heapObjects is the memory of live objects and of those that were not swept yet.
func heapObjects() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// every calls f again and again until stop is called, which waits for its end.
func every(pause time.Duration, f func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for {
			f()
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
