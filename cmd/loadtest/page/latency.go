package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/babelpool/babelpool/internal/plots"
)

// latency draws the curve of percentiles. Its horizontal axis counts nines: 90, 99 and 99.9 are equally far apart,
// because what matters is how the few slowest messages fare.
func latency(p Page) (section, error) {
	points := slices.DeleteFunc(slices.Clone(p.Latency), func(p Point) bool {
		return !(p.X >= 0 && p.X <= 100) || !drawable(p.Y)
	})
	if len(points) == 0 {
		return section{}, nil
	}
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
	label := "Line chart of latency by percentile in milliseconds: " + summary(points) + ". The table below has the numbers."
	wide, narrow, err := both(label, func(narrow bool) *plots.Canvas {
		s := chartSize(narrow)
		x, y := nines(points), latencyAxis(points)
		frame := s.frame(x, y)
		frame.Add(curve{points, s})
		return s.finish(frame, x, y)
	})
	if err != nil {
		return section{}, err
	}
	t := table{Head: []string{"Percentile", "Milliseconds"}}
	for _, p := range points {
		t.Rows = append(t.Rows, []string{percentile(p.X), plain(p.Y)})
	}
	return section{
		Heading: "Latency",
		Text:    "The share of messages on the horizontal axis took at most the time on the vertical one.",
		Charts:  []chart{{Wide: wide, Narrow: narrow, Table: t}},
	}, nil
}

// latencyAxis is logarithmic when the latencies span more than a decade and a half: on a linear axis the lower half of
// such a curve would lie flat on the ground.
func latencyAxis(points []Point) axis {
	const least, span = 1e-6, 30 // a nanosecond, in milliseconds
	low, high, lowest := math.Inf(1), math.Inf(-1), math.Inf(1)
	for _, p := range points {
		lowest, high = min(lowest, p.Y), max(high, p.Y)
		if p.Y >= least {
			low = min(low, p.Y)
		}
	}
	if lowest >= 0 && high/low > span {
		return logarithmic(low, high, "milliseconds, logarithmic")
	}
	return linear(lowest, high, 5, "milliseconds")
}

// Percentiles beyond this many nines stand where it ends.
const mostNines = 7

// standard are the percentiles that have a tick, as far as the data reach.
var standard = []float64{0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999, 99.99999}

// nines is the axis. It ends at the highest standard percentile that the data reach; 100 has no place on such a scale
// and stands one step further, as "max".
func nines(points []Point) axis {
	a := axis{scale: nineScale{}, title: "percentile", to: 2}
	top := 0.0
	for _, p := range points {
		if p.X < 100 {
			top = max(top, p.X)
		}
	}
	a.to = min(max(math.Ceil(nineOf(top)-1e-6), 2), mostNines)
	for i, p := range standard {
		if i < 2 || float64(i-1) <= a.to {
			a.ticks = append(a.ticks, plot.Tick{Value: p, Label: percentile(p)})
		}
	}
	if points[len(points)-1].X == 100 {
		a.to++
		a.ticks = append(a.ticks, plot.Tick{Value: 100, Label: "max"})
	}
	return a
}

// nineScale normalises percentiles by their nines. The ends of its axis are nines already.
type nineScale struct{}

// Normalize implements plot.Normalizer.
func (nineScale) Normalize(low, high, percentile float64) float64 {
	if percentile >= 100 {
		return 1
	}
	return (min(nineOf(percentile), mostNines) - low) / (high - low)
}

// nineOf is 1 for 90, 2 for 99, 3 for 99.9, and 0 for 0.
func nineOf(percentile float64) float64 { return -math.Log10(1 - percentile/100) }

// percentile is its name: 50, 99.9.
func percentile(p float64) string {
	if p == 100 {
		return "100 (max)"
	}
	return strconv.FormatFloat(math.Round(p*1e7)/1e7, 'f', -1, 64)
}

// curve draws the line and, at the percentiles with a tick, a dot and the value.
type curve struct {
	points []Point
	size   size
}

// Plot implements plot.Plotter.
func (d curve) Plot(c draw.Canvas, p *plot.Plot) {
	xys := make(plotter.XYs, len(d.points))
	for i, point := range d.points {
		xys[i] = plotter.XY(point)
	}
	line := plotter.Line{XYs: xys, LineStyle: draw.LineStyle{Color: lines[0].light, Width: 2}}
	line.Plot(c, p)

	x, y := p.Transforms(&c)
	values := plots.Font{Size: d.size.font, Bold: true, Color: ink.light}
	free := c.Max.X * 2 // where the value to the right begins
	canvas := plots.Canvas{Canvas: c}
	for i, point := range slices.Backward(d.points) { // so that the highest keep their values where room is short
		if !named(point.X) && len(d.points) > 1 {
			continue
		}
		at := vg.Point{X: x(point.X), Y: y(point.Y)}
		c.DrawGlyph(dot(lines[0], 3.5), at)
		if i+1 < len(d.points) && d.points[i+1].X == point.X {
			continue // the curve rises here; the value is at its top
		}
		// Above and to the left of the dot is the free side of a curve that rises to the right.
		text := plots.Significant(point.Y)
		width := vg.Length(values.Width(text))
		left := max(at.X-width+3, c.Min.X+2)
		if left+width+4 > free {
			continue
		}
		canvas.Text(values, left, at.Y+vg.Length(d.size.font*0.9), plots.Start, text)
		free = left
	}
}

// named says whether a percentile is one that people ask for.
func named(percentile float64) bool {
	return percentile == 100 || slices.ContainsFunc(standard[1:], func(s float64) bool { return math.Abs(s-percentile) < 1e-9 })
}

// summary reads the values at the usual percentiles, or the ends where the data have none of them.
func summary(points []Point) string {
	var parts []string
	for i, p := range points {
		if named(p.X) || (len(parts) == 0 && i == len(points)-1) {
			parts = append(parts, fmt.Sprintf("%s: %s", percentile(p.X), plots.Significant(p.Y)))
		}
	}
	return strings.Join(parts, ", ")
}
