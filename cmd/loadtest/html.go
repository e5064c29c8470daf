package main

import (
	"fmt"
	"strconv"

	"github.com/babelpool/babelpool/cmd/loadtest/page"
)

// curvePercentiles are where the page's latency curve has its points: closer together where the tail is.
var curvePercentiles = []float64{50, 60, 70, 80, 85, 90, 95, 97.5, 99, 99.5, 99.75, 99.9, 99.95, 99.99, 100}

// page is the report as a page shows it.
func (r *report) page() page.Page {
	c := &r.Config
	facts := c.facts(r.server)
	facts = append(facts, [2]string{"consumer", c.shape()})
	facts = append(facts, [][2]string{
		{"published", countAt(r.Published, r.PublishPerS)}, {"acked", countAt(r.Acked, r.AckedPerS)},
		{"dead-lettered", count(r.DeadLettered)}, {"left", count(r.LeftReady + r.LeftInFlight + r.LeftDelayed)},
		{"lost", count(r.Lost)}, {"redelivered", count(r.Redelivered)}, {"duplicated", count(r.Duplicated)},
	}...)
	if r.MissedSends != nil {
		facts = append(facts, [2]string{"missed sends", count(*r.MissedSends) + " " + r.lateRemark()})
	}
	facts = append(facts, [2]string{"Redis CPU", perMessageText(r.RedisCPU)}, [2]string{"client CPU", perMessageText(r.ClientCPU)})
	for i, p := range r.Processes {
		facts = append(facts, [2]string{
			fmt.Sprintf("process %d", i+1), count(p.Acked) + " acked, " + perMessageText(p.ClientCPU) + " of client CPU",
		})
	}
	facts = append(facts, [2]string{"verdict", r.verdict()})
	return page.Page{
		Title: "Load test: " + c.Layout + " layout", Facts: facts, Throughput: r.samples.series(), Latency: r.curve,
	}
}

// page is the comparison as a page shows it.
func (r *sweepReport) page() page.Page {
	p := page.Page{Title: "Load test sweep: " + r.Config.Layout + " layout", Facts: r.Config.facts(r.server)}
	p.Facts = append(p.Facts, [2]string{"method", r.method()})
	for _, cell := range r.Sweep {
		p.Sweep = append(p.Sweep, page.Cell{
			Concurrency: cell.Concurrency, Prefetch: cell.Prefetch, Batch: cell.Batch, PerSecond: cell.AckedPerS, Best: cell.Best,
		})
		if cell.Best {
			p.Facts = append(p.Facts, [2]string{"best", cell.String() + ": " + whole(cell.AckedPerS) + " messages acked per second"})
		}
	}
	if len(r.Skipped) > 0 {
		p.Facts = append(p.Facts, [2]string{"skipped", joined(r.Skipped)})
	}
	return p
}

// facts are those of every page.
func (c *reportConfig) facts(srv *server) [][2]string {
	amount := "for " + deref(c.Duration)
	if c.Messages != nil {
		amount = count(*c.Messages) + " messages"
	}
	switch {
	case c.Prefill:
		amount += ", published before the consumption"
	case c.Rate > 0:
		amount += ", " + strconv.FormatFloat(c.Rate, 'f', -1, 64) + " a second"
	default:
		amount += ", as fast as possible"
	}
	facts := [][2]string{
		{"server", srv.String()}, {"layout", c.Layout}, {"load", amount}, {"envelope", count(int64(c.Payload)) + " bytes"},
		{"handler time", c.HandlerTime},
	}
	if c.Fail > 0 {
		facts = append(facts, [2]string{"failing on purpose", strconv.FormatFloat(100*c.Fail, 'f', -1, 64) + " % of the handler runs"})
	}
	return facts
}

// deref is what a pointer leads to, or nothing.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func countAt(n int64, perSecond float64) string {
	return count(n) + " (" + whole(perSecond) + " a second)"
}

// series are the rates between the samples.
func (s *samples) series() []page.Series {
	published, acked := page.Series{Name: "published"}, page.Series{Name: "acked"}
	for i := 1; i < len(s.taken); i++ {
		a, b := s.taken[i-1], s.taken[i]
		passed := (b.at - a.at).Seconds()
		if passed <= 0 {
			continue
		}
		x := rounded((a.at+b.at).Seconds()/2, 3)
		published.Points = append(published.Points, page.Point{X: x, Y: float64(b.published-a.published) / passed})
		acked.Points = append(acked.Points, page.Point{X: x, Y: float64(b.acked-a.acked) / passed})
	}
	if len(acked.Points) == 0 {
		return nil
	}
	return []page.Series{published, acked}
}

// latencyCurve is nil when nothing was recorded. Its last point is the highest latency.
func (l *latencies) latencyCurve() []page.Point {
	all := l.all()
	if all.TotalCount() == 0 {
		return nil
	}
	var points []page.Point
	for _, percentile := range curvePercentiles {
		ms := rounded(float64(all.ValueAtQuantile(percentile))/1000, 3)
		points = append(points, page.Point{X: percentile, Y: ms})
	}
	return points
}
