package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestViewParts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		view view
		rate float64
		want string
	}{
		"under way": {
			view{verb: "settled", done: 2500, total: 10_000}, 1500,
			"settled  2,500 of 10,000|    1,500 msg/s|0:05 left",
		},
		"waiting": {
			view{verb: "settled", done: 9990, total: 10_000}, 0,
			"settled  9,990 of 10,000|        0 msg/s|waiting for 10 more",
		},
		"done": {view{verb: "settled", done: 5, total: 5}, 100, "settled 5 of 5|      100 msg/s"},
		"for a time, keeping up": {
			view{verb: "settled", done: 50, total: 50, open: true, least: 90 * time.Second}, 10,
			"settled 50|       10 msg/s|1:30 left",
		},
		"for a time, falling behind": {
			view{verb: "settled", done: 50, total: 5050, open: true, least: 90 * time.Second}, 10,
			"settled 50|       10 msg/s|8:20 left",
		},
	} {
		if got := strings.Join(tt.view.parts(tt.rate), "|"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestSpeedometerForgets(t *testing.T) {
	t.Parallel()
	var s speedometer
	begin := time.Now()
	if rate := s.add(begin, 0); rate != 0 {
		t.Errorf("rate %v from one sample", rate)
	}
	for i := 1; i <= 100; i++ { // 1,000 per second for 10 s
		if rate := s.add(begin.Add(time.Duration(i)*100*time.Millisecond), int64(i)*100); rate < 999 || rate > 1001 {
			t.Fatalf("rate %v at sample %d", rate, i)
		}
	}
	for i := 101; i <= 131; i++ { // then nothing for a little longer than the window
		s.add(begin.Add(time.Duration(i)*100*time.Millisecond), 10_000)
	}
	if rate := s.add(begin.Add(13200*time.Millisecond), 10_000); rate != 0 {
		t.Errorf("rate %v after 3 s of standstill", rate)
	}
}

// The fraction never falls, whichever end comes first.
func TestFractionOfATimedRun(t *testing.T) {
	t.Parallel()
	tr, _, _ := fakeTrial(t, config{duration: time.Hour, payload: 300})
	if v := tr.consumingView(); v.fraction != 0 || v.least != time.Hour || !v.open {
		t.Errorf("before it began: %+v", v)
	}
	tr.clock.start = tr.clock.start.Add(-30 * time.Minute)
	tr.publishBegan.Store(1)
	if err := tr.books.open(100); err != nil {
		t.Fatal(err)
	}
	for seq := range int64(100) {
		tr.books.published(seq, stored)
	}
	tr.settled.Store(50)
	if v := tr.consumingView(); v.fraction < 0.25 || v.fraction > 0.26 || v.least > 30*time.Minute || v.total != 100 {
		t.Errorf("half of half: %+v", v)
	}
	tr.publishingEnded.Store(true)
	if v := tr.consumingView(); v.fraction != 0.5 || v.open || v.least != 0 {
		t.Errorf("when publishing has ended: %+v", v)
	}
	tr.cfg.duration, tr.cfg.messages = 0, 400
	if v := tr.publishingView(); v.fraction != 0.25 || v.done != 100 || v.total != 400 {
		t.Errorf("publishing a number: %+v", v)
	}
}

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 999_999: "999,999", 1_000_000: "1,000,000", -1234: "-1,234",
	} {
		if got := count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0:00", time.Millisecond: "0:01", 61 * time.Second: "1:01", time.Hour + time.Second: "1:00:01",
		1000 * time.Hour: "over 100 h",
	} {
		if got := clockTime(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	cpu := 7.25
	r := report{
		Config:    reportConfig{Layout: "zset", Concurrency: 64, Prefetch: 256, Payload: 100_000},
		Published: 1_234_567, Acked: 1_234_000, DeadLettered: 500, LeftDelayed: 60, Lost: 7, Redelivered: 42, Duplicated: 1,
		PublishPerS: 98_765.4, AckedPerS: 65_432.1, RedisCPU: &cpu,
		LatencyMS:      &latency{P50: 0.512, P90: 1.25, P99: 33.333, P999: 1234.5678, Max: 60_000},
		publishingTime: 12500 * time.Millisecond, consumingTime: 18860 * time.Millisecond,
		tally:  tally{Lost: 7, LostSeqs: []int64{3, 4, 5, 6, 7}, Strangers: 2},
		server: &server{source: sourceURL, version: "7.0.15", label: "redis://h:6379"}, queue: "loadtest-0123abcd",
	}
	const want = `
loadtest-0123abcd: zset layout on Redis 7.0.15 at redis://h:6379
64 workers, prefetch 256, envelopes of 100,000 bytes

  published            1,234,567      98,765 msg/s in 12.50 s
  acked                1,234,000      65,432 msg/s in 18.86 s
  dead-lettered              500
  left ready                   0
  left in flight               0
  left delayed                60
  lost                         7   sequence numbers 3, 4, 5, 6, 7, …
  redelivered                 42   handler starts beyond a message's first
  duplicated                   1   successful runs beyond a message's first

  Redis CPU          7.25 µs/msg
  client CPU           not known
  latency          from the intended publish to the handler's first start
    p50                  0.51 ms
    p90                  1.25 ms
    p99                 33.33 ms
    p99.9             1234.57 ms
    max              60000.00 ms

THE BOOKS DO NOT BALANCE: 7 published and in no place; 2 values in the keys that this run did not publish.
`
	var b strings.Builder
	r.writeTable(&b)
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
