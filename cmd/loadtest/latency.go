package main

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	latencyShards  = 4
	longestLatency = 24 * time.Hour // what is longer counts as this
	latencyDigits  = 3
)

// clock measures time from the start of a run, or of one of its processes. Messages carry wall-clock time, the
// one clock that Go shows and that all processes share. It can be set while the test runs, so each process looks
// at it once, at its start; from then on it counts on the monotonic clock. Only a clock that is set between two
// starts, a few milliseconds, would be in the latencies.
type clock struct {
	start time.Time
	wall  int64 // start, Unix nanoseconds
}

func newClock() clock {
	now := time.Now()
	return clock{start: now, wall: now.UnixNano()}
}

// stamp is the wall-clock time, Unix nanoseconds, of a moment after the start.
func (c clock) stamp(after time.Duration) int64 { return c.wall + int64(after) }

// now is the time since the start.
func (c clock) now() time.Duration { return time.Since(c.start) }

// since is the time from a stamp of this clock to now, a moment on it.
func (c clock) since(stamp int64, now time.Duration) time.Duration {
	return now - time.Duration(stamp-c.wall)
}

// latencies collect the time from the intended publish to the handler's start, in microseconds. A histogram
// of that library is not safe for concurrent use; a few of them, each with its lock, keep workers apart.
type latencies struct {
	shards [latencyShards]struct {
		sync.Mutex
		h *hdrhistogram.Histogram
	}
}

func newLatencies() *latencies {
	l := &latencies{}
	for i := range l.shards {
		l.shards[i].h = newHistogram()
	}
	return l
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longestLatency.Microseconds(), latencyDigits)
}

// record adds the latency of message seq.
func (l *latencies) record(seq int64, d time.Duration) {
	us := min(max(d, 0), longestLatency).Microseconds()
	shard := &l.shards[uint64(seq)%latencyShards]
	shard.Lock()
	defer shard.Unlock()
	_ = shard.h.RecordValue(us) // within its range
}

// latency is a summary in milliseconds.
type latency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// add adds what another process has recorded. It returns how many values it could not.
func (l *latencies) add(h *hdrhistogram.Histogram) (dropped int64) {
	shard := &l.shards[0]
	shard.Lock()
	defer shard.Unlock()
	return shard.h.Merge(h)
}

// all is everything that was recorded.
func (l *latencies) all() *hdrhistogram.Histogram {
	all := newHistogram()
	for i := range l.shards {
		shard := &l.shards[i]
		shard.Lock()
		all.Merge(shard.h)
		shard.Unlock()
	}
	return all
}

// summary is nil when nothing was recorded. Values are exact to three digits.
func (l *latencies) summary() *latency {
	all := l.all()
	if all.TotalCount() == 0 {
		return nil
	}
	ms := func(quantile float64) float64 { return rounded(float64(all.ValueAtQuantile(quantile))/1000, 3) }
	return &latency{P50: ms(50), P90: ms(90), P99: ms(99), P999: ms(99.9), Max: rounded(float64(all.Max())/1000, 3)}
}

// rounded is a number to so many places after the point.
func rounded(v float64, places int) float64 {
	unit := math.Pow10(places)
	return math.Round(v*unit) / unit
}
