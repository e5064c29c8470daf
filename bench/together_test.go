package bench

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/publisher"
)

// BenchmarkTogether publishes b.N messages and then consumes them, and after that does both at once. The metrics
// of measure are those of both at once. together/apart is how many messages a second of the server's CPU carries
// at once, in relation to one after the other: below 1, producers and consumers get in each other's way.
func BenchmarkTogether(b *testing.B) {
	for _, layout := range both {
		b.Run(layout.String(), func(b *testing.B) { together(b, layout) })
	}
}

func together(b *testing.B, layout flow.Layout) {
	r := newRig(b, false)
	p, err := publisher.New(publisher.Config{Client: r.connect(b), Queue: queue, Layout: layout})
	must(b, err)
	messages := make([]publisher.Message, publishBatch)
	for i := range messages {
		messages[i] = publisher.Message{URN: urn, Data: order{int64(i), note}}
	}
	publish := func() {
		for left := b.N; left > 0; left -= publishBatch {
			_, err := p.PublishBatch(context.Background(), messages[:min(left, publishBatch)])
			must(b, err)
		}
	}
	cfg := oneQueue(layout, concurrency, growthPrefetch)

	before := r.cpu(b)
	publish()
	r.consume(b, cfg, b.N)
	apart := r.cpu(b) - before

	var count atomic.Int64
	done := make(chan struct{})
	before = r.cpu(b)
	var atOnce time.Duration
	r.measure(b, b.N, func() {
		stop := r.start(b, cfg, func(order) {
			if count.Add(1) == int64(b.N) {
				close(done)
			}
		})
		publish()
		<-done
		stop()
		atOnce = r.cpu(b) - before
	})
	b.ReportMetric(float64(apart.Nanoseconds())/1e3/float64(b.N), "apart-redis-µs/msg")
	b.ReportMetric(float64(apart)/float64(atOnce), "together/apart")
}
