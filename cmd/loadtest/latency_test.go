package main

import (
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestLatencySummary(t *testing.T) {
	t.Parallel()
	l := newLatencies()
	if l.summary() != nil {
		t.Error("a summary of nothing")
	}
	for seq := range int64(1000) {
		l.record(seq, time.Duration(seq+1)*time.Millisecond)
	}
	want := &latency{P50: 500, P90: 900, P99: 990, P999: 999, Max: 1000}
	if diff := cmp.Diff(want, l.summary(), cmpopts.EquateApprox(0.002, 0)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLatencyOutOfRangeIsKept(t *testing.T) {
	t.Parallel()
	l := newLatencies()
	l.record(0, -time.Second)
	l.record(1, 1000*time.Hour)
	got, most := l.summary(), longestLatency.Seconds()*1000
	if got.P50 != 0 || got.Max < most || got.Max > 1.01*most {
		t.Errorf("%+v", got)
	}
}

// A stamp is wall-clock time, but what is measured from it is not moved by setting that clock.
func TestClockMeasuresFromTheIntendedTime(t *testing.T) {
	t.Parallel()
	c := newClock()
	if got := c.since(c.stamp(3*time.Second), 5*time.Second); got != 2*time.Second {
		t.Errorf("%s from the 3rd to the 5th second", got)
	}
	if d := time.Since(time.Unix(0, c.stamp(0))); d < 0 || d > time.Minute {
		t.Errorf("the stamp of the start is %s old", d)
	}
}

// Latencies of another process are those it took.
func TestLatenciesArePutTogether(t *testing.T) {
	t.Parallel()
	var sum, other, alone = newLatencies(), newLatencies(), newLatencies()
	for seq := range int64(1000) {
		d := time.Duration(seq*seq) * time.Microsecond
		alone.record(seq, d)
		if seq%3 == 0 {
			sum.record(seq, d)
		} else {
			other.record(seq, d)
		}
	}
	text, err := other.all().Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{hist: text}
	if err := m.addTo(sum); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(alone.summary(), sum.summary()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := (&member{}).addTo(sum); err != nil || sum.all().TotalCount() != 1000 {
		t.Errorf("%v, %d latencies after a process without any", err, sum.all().TotalCount())
	}
	if err := (&member{hist: []byte("x")}).addTo(sum); err == nil {
		t.Error("no error for what is no histogram")
	}
}
