package bench

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/flow"
)

const (
	yardstickBatch = 256
	yardstickAhead = 4 // batches reserved and not yet settled
)

// BenchmarkCeiling is the reserve and settle scripts and nothing else: no decoding, no handlers, no leases.
func BenchmarkCeiling(b *testing.B) {
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		b.Run(layout.String(), func(b *testing.B) { ceiling(b, newRig(b, false), layout) })
	}
}

func ceiling(b *testing.B, r *rig, layout flow.Layout) {
	store, keys := r.store(b, layout)
	r.fill(b, keys.Ready, b.N)
	r.measure(b, b.N, func() {
		reserved := make(chan *flow.Lease, yardstickAhead)
		var group errgroup.Group
		group.Go(func() error {
			defer close(reserved)
			for left := b.N; left > 0; {
				got, err := store.Reserve(context.Background(), flow.ReserveRequest{
					Most: yardstickBatch, Bytes: 64 << 20, FirstPop: yardstickBatch, Migration: 1000,
				})
				if err != nil {
					return err
				}
				if got.Lease == nil {
					return errShort
				}
				left -= len(got.Lease.Items)
				reserved <- got.Lease
			}
			return nil
		})
		group.Go(func() error {
			for lease := range reserved {
				settled := make([]flow.Settlement, len(lease.Items))
				for i := range lease.Items {
					settled[i].Reservation = &lease.Items[i]
				}
				if _, err := store.Settle(context.Background(), settled); err != nil {
					return err
				}
			}
			return nil
		})
		must(b, group.Wait())
	})
}

// BenchmarkFloor moves the same messages through two lists with plain commands: take n, store n, take n. It
// keeps no promise of the contract; no consumer can be faster.
func BenchmarkFloor(b *testing.B) { floor(b, newRig(b, false)) }

func floor(b *testing.B, r *rig) {
	const ready, processing = queue, queue + ":processing"
	r.fill(b, ready, b.N)
	r.measure(b, b.N, func() {
		moved := make(chan int, yardstickAhead)
		ctx := context.Background()
		var group errgroup.Group
		group.Go(func() error {
			defer close(moved)
			for left := b.N; left > 0; {
				values, err := r.client.LPopCount(ctx, ready, yardstickBatch).Result()
				if err != nil {
					return err
				}
				words := make([]any, len(values))
				for i := range values {
					words[i] = &values[i]
				}
				if err := r.client.RPush(ctx, processing, words...).Err(); err != nil {
					return err
				}
				left -= len(values)
				moved <- len(values)
			}
			return nil
		})
		group.Go(func() error {
			for n := range moved {
				if err := r.client.LPopCount(ctx, processing, n).Err(); err != nil {
					return err
				}
			}
			return nil
		})
		must(b, group.Wait())
	})
}
