package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/babelpool/babelpool/cmd/loadtest/page"
)

func TestSamplesBecomeRates(t *testing.T) {
	t.Parallel()
	var s samples
	s.tick(runSample{0, 0, 0})
	s.tick(runSample{100 * time.Millisecond, 500, 100})
	s.tick(runSample{130 * time.Millisecond, 600, 200}) // a tick that follows a late one: dropped
	s.tick(runSample{200 * time.Millisecond, 500, 400})
	s.end(runSample{220 * time.Millisecond, 500, 500}) // takes the place of the last one
	want := []page.Series{
		{Name: "published", Points: []page.Point{{X: 0.05, Y: 5000}, {X: 0.16, Y: 0}}},
		{Name: "acked", Points: []page.Point{{X: 0.05, Y: 1000}, {X: 0.16, Y: 400 / 0.12}}},
	}
	if diff := cmp.Diff(want, s.series(), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAShortRunHasAChartToo(t *testing.T) {
	t.Parallel()
	var s samples
	if s.series() != nil {
		t.Error("lines without samples")
	}
	s.tick(runSample{0, 0, 0})
	s.end(runSample{20 * time.Millisecond, 100, 100})
	if lines := s.series(); len(lines) != 2 || len(lines[1].Points) != 1 || lines[1].Points[0].Y != 5000 {
		t.Errorf("%+v", lines)
	}
}

// The samples of a day take no more room than those of a minute, and are evenly spaced over all of it.
func TestSamplesOfALongRunAreThinned(t *testing.T) {
	t.Parallel()
	var s samples
	var last runSample
	for i := range 24 * 60 * 60 * 10 {
		last = runSample{time.Duration(i) * sampleEvery, int64(i), int64(i)}
		s.tick(last)
	}
	s.end(last)
	if n := len(s.taken); n > mostSamples+1 || n < mostSamples/2 {
		t.Errorf("%d samples", n)
	}
	if first, final := s.taken[0], s.taken[len(s.taken)-1]; first.at != 0 || final != last {
		t.Errorf("from %s to %s", first.at, final.at)
	}
	for i := 1; i < len(s.taken)-1; i++ {
		if gap := s.taken[i].at - s.taken[i-1].at; gap != s.every {
			t.Fatalf("sample %d is %s after the one before, the others are %s", i, gap, s.every)
		}
	}
}

func TestLatencyCurve(t *testing.T) {
	t.Parallel()
	l := newLatencies()
	if l.latencyCurve() != nil {
		t.Error("a curve of nothing")
	}
	for seq := range int64(10_000) {
		l.record(seq, time.Duration(seq+1)*time.Millisecond)
	}
	got := l.latencyCurve()
	var want []page.Point
	for _, percentile := range curvePercentiles {
		want = append(want, page.Point{X: percentile, Y: 100 * percentile})
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0.002, 0)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
