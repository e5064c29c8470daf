package bench

import (
	"context"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/publisher"
)

const (
	publishBatch    = 256
	publishRoutines = 64
)

type order struct {
	OrderID int64  `json:"order_id"`
	Note    string `json:"note"`
}

// note pads an order to an envelope of about 300 bytes.
const note = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

// BenchmarkPublish compares the ways to publish with the least that publishing can be: a variadic RPUSH of
// ready bodies, and one RPUSH per message from many goroutines.
func BenchmarkPublish(b *testing.B) {
	r := newRig(b, false)
	ctx := context.Background()
	b.Run("rpush/batch=256", func(b *testing.B) {
		r.fill(b, queue, 0)
		text := newBodies(b, bodyBytes).at(1)
		values := make([]any, publishBatch)
		for i := range values {
			values[i] = text
		}
		r.measure(b, b.N, func() {
			for left := b.N; left > 0; left -= publishBatch {
				must(b, r.client.RPush(ctx, queue, values[:min(left, publishBatch)]...).Err())
			}
		})
	})
	b.Run("rpush/routines=64", func(b *testing.B) {
		r.fill(b, queue, 0)
		text := newBodies(b, bodyBytes).at(1)
		r.measure(b, b.N, func() { inRoutines(b, func() error { return r.client.RPush(ctx, queue, text).Err() }) })
	})
	for _, layout := range both {
		p, err := publisher.New(publisher.Config{Client: r.client, Queue: queue, Layout: layout})
		must(b, err)
		b.Run(layout.String()+"/batch=256", func(b *testing.B) {
			r.fill(b, queue, 0)
			messages := make([]publisher.Message, publishBatch)
			for i := range messages {
				messages[i] = publisher.Message{URN: urn, Data: order{int64(i), note}}
			}
			b.ReportAllocs()
			r.measure(b, b.N, func() {
				for left := b.N; left > 0; left -= publishBatch {
					_, err := p.PublishBatch(ctx, messages[:min(left, publishBatch)])
					must(b, err)
				}
			})
		})
		b.Run(layout.String()+"/routines=64", func(b *testing.B) {
			r.fill(b, queue, 0)
			b.ReportAllocs()
			r.measure(b, b.N, func() {
				inRoutines(b, func() error {
					_, err := p.Publish(ctx, urn, order{1, note})
					return err
				})
			})
		})
	}
}

// inRoutines calls f b.N times from 64 goroutines.
func inRoutines(b *testing.B, f func() error) {
	var next atomic.Int64
	var group errgroup.Group
	for range publishRoutines {
		group.Go(func() error {
			for next.Add(1) <= int64(b.N) {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(b, group.Wait())
}
