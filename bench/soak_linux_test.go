package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/babelpool/babelpool/publisher"
)

const (
	soakEnv      = "BQ_SOAK" // how long each layout runs, such as 10m
	soakDefault  = 2 * time.Second
	soakSample   = 2 * time.Second
	soakPrefetch = 1000
	soakBatch    = 100
	soakEvery    = 10 * time.Millisecond // 10,000 messages a second
	soakGrowth   = 1.10                  // of the first third's memory, in the last third
)

// BenchmarkSoak keeps one consumer process busy for the time that BQ_SOAK says, at 10,000 messages a second, and looks
// at its resident memory: what it has at most, and that it does not grow. b.N means nothing here.
func BenchmarkSoak(b *testing.B) {
	length := soakDefault
	if text := os.Getenv(soakEnv); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		must(b, err)
	}
	for _, layout := range both {
		b.Run(layout.String(), func(b *testing.B) {
			r := newRig(b, false)
			store, _ := r.store(b, layout)
			p, err := publisher.New(publisher.Config{Client: r.client, Queue: queue, Layout: layout})
			must(b, err)
			messages := make([]publisher.Message, soakBatch)
			for i := range messages {
				messages[i] = publisher.Message{URN: urn, Data: order{int64(i), note}}
			}
			all := r.children(b, 1, childConfig{Layout: layout, Concurrency: concurrency, Prefetch: soakPrefetch},
				func(int) string { return queue })
			release(b, all)
			var samples []float64
			published, begun := 0, time.Now()
			sampleAt := begun
			tick := time.NewTicker(soakEvery)
			defer tick.Stop()
			for now := begun; now.Sub(begun) < length; now = <-tick.C {
				_, err := p.PublishBatch(b.Context(), messages)
				must(b, err)
				published += len(messages)
				if !now.Before(sampleAt) {
					sampleAt = now.Add(soakSample)
					samples = append(samples, residentMiB(b, all[0].cmd.Process.Pid))
				}
			}
			took := time.Since(begun)
			r.awaitDrained(b, store)
			samples = append(samples, residentMiB(b, all[0].cmd.Process.Pid))
			if sum := stop(b, all); sum.Acked != int64(published) {
				b.Fatalf("%d messages acked of %d", sum.Acked, published)
			}
			third := len(samples) / 3
			if third > 0 {
				first, last := median(samples[:third]), median(samples[len(samples)-third:])
				b.ReportMetric(first, "first-MiB")
				b.ReportMetric(last, "last-MiB")
				if length >= time.Minute && last > first*soakGrowth {
					b.Errorf("memory grows: %.1f MiB in the first third, %.1f MiB in the last", first, last)
				}
			}
			b.ReportMetric(slices.Max(samples), "most-MiB")
			b.ReportMetric(float64(published)/took.Seconds(), "msg/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// residentMiB is the resident memory of a process.
func residentMiB(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(b, err)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if value, ok := bytes.CutPrefix(lines.Bytes(), []byte("VmRSS:")); ok {
			kib, err := strconv.ParseFloat(string(bytes.Fields(value)[0]), 64)
			must(b, err)
			return kib / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
