package page

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/babelpool/babelpool/internal/plots"
)

// throughput draws the series over time.
func throughput(p Page) (section, error) {
	shown := drawn(p.Throughput)
	if len(shown) == 0 {
		return section{}, nil
	}
	b := boundsOf(shown)
	unit, perUnit := "seconds", 1.0
	switch span := b.right - b.left; {
	case span >= 3*3600:
		unit, perUnit = "hours", 3600
	case span >= 300:
		unit, perUnit = "minutes", 60
	}
	label := fmt.Sprintf("Line chart of messages per second from %s to %s seconds. Highest: %s. The table below has the numbers.",
		plain(b.left), plain(b.right), peaks(shown))
	wide, narrow, err := both(label, func(narrow bool) *plots.Canvas {
		s := chartSize(narrow)
		x := timeAxis(b, perUnit, narrow, unit)
		y := linear(b.bottom, b.top, 5, "messages per second")
		frame := s.frame(x, y)
		for i, line := range shown {
			frame.Add(newLine(line.Points, i, perUnit)...)
		}
		return s.finish(frame, x, y)
	})
	if err != nil {
		return section{}, err
	}
	s := section{
		Heading: "Throughput", Text: "Messages per second over time.",
		Charts: []chart{{Wide: wide, Narrow: narrow, Table: seriesTable(shown)}},
	}
	for i, line := range shown {
		s.Legend = append(s.Legend, key{line.Name, look(i)})
	}
	return s, nil
}

// drawn are the series with a point to draw, each sorted by time.
func drawn(all []Series) []Series {
	var shown []Series
	for i, s := range all {
		points := slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool { return !drawable(p.X) })
		if !slices.ContainsFunc(points, func(p Point) bool { return drawable(p.Y) }) {
			continue
		}
		sort.SliceStable(points, func(i, j int) bool { return points[i].X < points[j].X })
		name := plots.Clean(s.Name)
		if name == "" {
			name = "series " + strconv.Itoa(i+1)
		}
		shown = append(shown, Series{name, points})
	}
	return shown
}

// bounds are the lowest and highest values of series.
type bounds struct{ left, right, bottom, top float64 }

func boundsOf(all []Series) bounds {
	b := bounds{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
	for _, s := range all {
		for _, p := range s.Points {
			if drawable(p.Y) {
				b.left, b.right = min(b.left, p.X), max(b.right, p.X)
				b.bottom, b.top = min(b.bottom, p.Y), max(b.top, p.Y)
			}
		}
	}
	return b
}

// timeAxis starts at 0 unless that would waste a quarter of the width or more.
func timeAxis(b bounds, perUnit float64, narrow bool, title string) axis {
	n := 10
	if narrow {
		n = 5
	}
	left, right := b.left/perUnit, b.right/perUnit
	if left > 0 && left <= right/4 {
		left = 0
	}
	if size := max(1, math.Abs(right)); right-left < tiny*size {
		right += size
		if left -= size; b.left >= 0 {
			left = max(left, 0)
		}
	}
	return axis{left, right, plot.LinearScale{}, evenTicks(left, right, n, plots.Significant), title}
}

// newLine draws one series: a line for every unbroken run of points, and a dot for a point on its own.
func newLine(points []Point, i int, perUnit float64) []plot.Plotter {
	color := lines[i%len(lines)]
	dashes := [][]vg.Length{nil, {7, 4}, {2, 3}}[i/len(lines)%3]
	var out []plot.Plotter
	for _, run := range runs(points, perUnit) {
		if len(run) == 1 {
			out = append(out, &plotter.Scatter{XYs: run, GlyphStyle: dot(color, 3.5)})
			continue
		}
		out = append(out, &plotter.Line{XYs: run, LineStyle: draw.LineStyle{Color: color.light, Width: 2, Dashes: dashes}})
	}
	return out
}

func dot(t tint, radius vg.Length) draw.GlyphStyle {
	return draw.GlyphStyle{Color: t.light, Radius: radius, Shape: draw.CircleGlyph{}}
}

// runs are the stretches between points that cannot be drawn.
func runs(points []Point, perUnit float64) []plotter.XYs {
	var out []plotter.XYs
	broken := true
	for _, p := range points {
		if !drawable(p.Y) {
			broken = true
			continue
		}
		if broken {
			out = append(out, nil)
		}
		broken = false
		last := len(out) - 1
		out[last] = append(out[last], plotter.XY{X: p.X / perUnit, Y: p.Y})
	}
	return out
}

// peaks says how high every series goes, for as many as one listens to.
func peaks(all []Series) string {
	const most = 4
	text := ""
	for i, s := range all {
		if i == most {
			return text + fmt.Sprintf(", and %d more", len(all)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += s.Name + " " + plots.Count(boundsOf(all[i:i+1]).top)
	}
	return text
}

// seriesTable has a row for every time and a column for every series.
func seriesTable(all []Series) table {
	t := table{Head: []string{"Seconds"}}
	rows := make(map[float64][]string)
	var times []float64
	for i, s := range all {
		t.Head = append(t.Head, s.Name)
		for _, p := range s.Points {
			row, ok := rows[p.X]
			if !ok {
				row = make([]string, len(all)+1)
				row[0] = plain(p.X)
				times = append(times, p.X)
				rows[p.X] = row
			}
			row[i+1] = plots.Count(p.Y)
		}
	}
	slices.Sort(times)
	for _, at := range times {
		t.Rows = append(t.Rows, rows[at])
	}
	return t
}

// plain is a number with at most three decimals.
func plain(v float64) string {
	if !drawable(v) {
		return plots.Count(v)
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}
