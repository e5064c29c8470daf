package bench

import (
	"testing"

	"github.com/babelpool/babelpool/internal/flow"
)

const (
	concurrency = 64
	prefetch    = 1024
)

// BenchmarkEndToEnd is a pool that consumes a full queue; the handler binds data into a struct and returns.
func BenchmarkEndToEnd(b *testing.B) {
	for _, layout := range both {
		b.Run(layout.String(), func(b *testing.B) { endToEnd(b, newRig(b, false), layout) })
	}
}

// BenchmarkEndToEndAOF is the same beside an append-only file, for its bytes per message.
func BenchmarkEndToEndAOF(b *testing.B) {
	for _, layout := range both {
		b.Run(layout.String(), func(b *testing.B) { endToEnd(b, newRig(b, true), layout) })
	}
}

func endToEnd(b *testing.B, r *rig, layout flow.Layout) {
	_, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N)
	b.ReportAllocs()
	r.measure(b, b.N, func() { r.consume(b, oneQueue(layout, concurrency, prefetch), b.N) })
}
