package bench

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/publisher"
)

// BenchmarkLatency is the way of a single message through an idle pool, from before it is published to the start
// of its handler, beside a PING on the same machine at the same time. At most 2,000 messages, 1 to 30 ms apart,
// so that they come at any moment of an idle loop.
func BenchmarkLatency(b *testing.B) {
	for _, layout := range both {
		b.Run(layout.String(), func(b *testing.B) { latency(b, layout) })
	}
}

func latency(b *testing.B, layout flow.Layout) {
	const most = 2000
	r := newRig(b, false)
	other := r.connect(b)
	p, err := publisher.New(publisher.Config{Client: other, Queue: queue, Layout: layout})
	must(b, err)
	started := make(chan time.Time, 1)
	stop := r.start(b, oneQueue(layout, concurrency, growthPrefetch), func(order) { started <- time.Now() })
	pickUp := func() time.Duration {
		published := time.Now()
		_, err := p.Publish(context.Background(), urn, order{1, note})
		must(b, err)
		return (<-started).Sub(published)
	}
	pickUp() // the pool runs, and the server knows the scripts

	n := min(b.N, most)
	var took, pings []time.Duration
	for range n {
		gap := time.Millisecond + rand.N(29*time.Millisecond)
		pause(gap / 2)
		pings = append(pings, ping(b, other))
		pause(gap / 2)
		took = append(took, pickUp())
	}
	stop()
	reportLatency(b, took, pings)
}

// BenchmarkHalfRate is the latency at half of the rate the pool can sustain, which a short run finds first:
// messages are due at even distances, whatever became of those before, and each one's time counts from when it
// was due. The PINGs go out under the same load.
func BenchmarkHalfRate(b *testing.B) {
	for _, layout := range both {
		b.Run(layout.String(), func(b *testing.B) { halfRate(b, layout) })
	}
}

func halfRate(b *testing.B, layout flow.Layout) {
	prefilled, length := 100_000, 3*time.Second
	if short(b) {
		prefilled, length = 5_000, 300*time.Millisecond
	}
	r := newRig(b, false)
	_, keys := r.store(b, layout)
	r.fill(b, keys.Ready, prefilled)
	begun := time.Now()
	r.consume(b, oneQueue(layout, concurrency, growthPrefetch), prefilled)
	rate := float64(prefilled) / time.Since(begun).Seconds() / 2
	n := int(rate * length.Seconds())

	// Due times are offsets from base, on the monotonic clock, and travel as the order's number.
	base := time.Now()
	took, pings := make([]time.Duration, n), []time.Duration(nil)
	var count atomic.Int64
	done := make(chan struct{})
	stop := r.start(b, oneQueue(layout, concurrency, growthPrefetch), func(o order) {
		at := count.Add(1)
		took[at-1] = time.Since(base) - time.Duration(o.OrderID)
		if at == int64(n) {
			close(done)
		}
	})
	pinger := r.connect(b)
	stopPings := every(2*time.Millisecond, func() { pings = append(pings, ping(b, pinger)) })
	p, err := publisher.New(publisher.Config{Client: r.connect(b), Queue: queue, Layout: layout})
	must(b, err)
	r.measure(b, n, func() {
		publishAtRate(b, p, rate, n, base)
		<-done
	})
	stopPings()
	stop()
	reportLatency(b, took, pings)
	b.ReportMetric(rate, "rate/s")
}

// publishAtRate publishes n messages, number i due at i/rate. What came due during a pause goes out at once.
func publishAtRate(b *testing.B, p *publisher.Publisher, rate float64, n int, base time.Time) {
	b.Helper()
	const between = 200 * time.Microsecond // short beside what is measured, long beside a call
	begun := time.Since(base)
	due := func(i int) time.Duration { return begun + time.Duration(float64(i)/rate*float64(time.Second)) }
	messages := make([]publisher.Message, 0, publishBatch)
	for sent := 0; sent < n; {
		messages = messages[:0]
		now := time.Since(base)
		for len(messages) < publishBatch && sent < n && due(sent) <= now {
			messages = append(messages, publisher.Message{URN: urn, Data: order{int64(due(sent)), note}})
			sent++
		}
		if len(messages) > 0 {
			_, err := p.PublishBatch(context.Background(), messages)
			must(b, err)
		}
		if len(messages) < publishBatch {
			pause(between)
		}
	}
}

func ping(tb testing.TB, client *redis.Client) time.Duration {
	sent := time.Now()
	if err := client.Ping(context.Background()).Err(); err != nil {
		tb.Errorf("bench: %v", err) // not Fatal: it also runs beside the benchmark's goroutine
	}
	return time.Since(sent)
}

// reportLatency also puts the percentiles in relation to the median PING, which is what the machine's network and
// scheduler take.
func reportLatency(b *testing.B, took, pings []time.Duration) {
	b.Helper()
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	p50, p99, pong := micros(percentile(took, 0.5)), micros(percentile(took, 0.99)), micros(percentile(pings, 0.5))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p50, "p50-µs")
	b.ReportMetric(p99, "p99-µs")
	b.ReportMetric(pong, "ping-p50-µs")
	b.ReportMetric(p50/pong, "p50/ping")
	b.ReportMetric(p99/pong, "p99/ping")
}

// percentile sorts and picks by nearest rank.
func percentile(all []time.Duration, p float64) time.Duration {
	slices.Sort(all)
	return all[max(0, int(math.Ceil(p*float64(len(all))))-1)]
}

// pause lets time pass, where the distance between messages is what is asked for.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}
