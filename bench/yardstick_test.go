package bench

import (
	"context"
	"testing"

	"github.com/babelpool/babelpool/internal/yardstick"
)

// BenchmarkCeiling is the reserve and settle scripts and nothing else: no decoding, no handlers, no leases.
func BenchmarkCeiling(b *testing.B) {
	for _, layout := range both {
		b.Run(layout.String(), func(b *testing.B) {
			r := newRig(b, false)
			store, keys := r.store(b, layout)
			r.fill(b, keys.Ready, b.N)
			r.measure(b, b.N, func() { must(b, yardstick.Ceiling(context.Background(), store, b.N)) })
		})
	}
}

// BenchmarkFloor moves the same messages through two lists with plain commands: take n, store n, take n. It
// keeps no promise of the contract.
func BenchmarkFloor(b *testing.B) {
	r := newRig(b, false)
	r.fill(b, queue, b.N)
	r.measure(b, b.N, func() {
		must(b, yardstick.Floor(context.Background(), r.client, queue, queue+":processing", b.N))
	})
}

// BenchmarkListScripts is the same by two scripts that know nothing of deadlines.
func BenchmarkListScripts(b *testing.B) {
	r := newRig(b, false)
	r.fill(b, queue, b.N)
	r.measure(b, b.N, func() {
		must(b, yardstick.ListScripts(context.Background(), r.client, queue, queue+":processing", b.N))
	})
}
