package page

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/babelpool/babelpool/internal/plots"
)

// size is what a chart's measures depend on.
type size struct {
	width, height float64
	font          float64 // in pixels
}

func chartSize(narrow bool) size {
	if narrow {
		return size{400, 290, 12.5}
	}
	return size{1040, 360, 13}
}

// axis is a direction of a line chart.
type axis struct {
	from, to float64
	scale    plot.Normalizer
	ticks    []plot.Tick
	title    string
}

// frame makes a plot with everything but the data: the grid, the ticks, and room for the titles of the axes.
func (s size) frame(x, y axis) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	labels := plots.Font{Size: s.font, Color: muted.light}
	x.ticks = s.spaced(x, labels)
	for _, a := range []struct {
		to   *plot.Axis
		from axis
	}{{&p.X, x}, {&p.Y, y}} {
		a.to.Min, a.to.Max, a.to.Scale = a.from.from, a.from.to, a.from.scale
		a.to.Tick.Marker = plot.ConstantTicks(a.from.ticks)
		style := labels.Style()
		style.XAlign, style.YAlign = a.to.Tick.Label.XAlign, a.to.Tick.Label.YAlign
		a.to.Tick.Label, a.to.Label.TextStyle = style, style
		a.to.Tick.Color, a.to.Color = rule.light, rule.light
		a.to.Width, a.to.Padding = 1, 0
	}
	p.X.Tick.Length, p.X.Tick.Width = 6, 1
	p.Y.Tick.Length, p.Y.Width = 0, 0 // the grid marks them
	p.Add(grid{})
	return p
}

// spaced takes the labels off ticks that stand too close to the one before. The last one keeps its label.
func (s size) spaced(a axis, font plots.Font) []plot.Tick {
	const margin = 60 // about what the vertical axis takes
	ticks := slices.Clone(a.ticks)
	left := func(i int) float64 {
		return a.scale.Normalize(a.from, a.to, ticks[i].Value)*(s.width-margin) - font.Width(ticks[i].Label)/2
	}
	last, free := len(ticks)-1, math.Inf(-1)
	for i := range ticks {
		end := left(i) + font.Width(ticks[i].Label) + s.font/2
		if left(i) < free || (i < last && end > left(last)) {
			ticks[i].Label = ""
			continue
		}
		free = end
	}
	return ticks
}

// finish draws the plot and the titles of the axes on a canvas of its size.
func (s size) finish(p *plot.Plot, x, y axis) *plots.Canvas {
	c := plots.New(s.width, s.height)
	line := vg.Length(s.font * 1.7)
	area := draw.Crop(c.Canvas, 1, -8, line, -1.5*line) // values may stand above the plot
	p.Draw(area)
	titles := plots.Font{Size: s.font, Color: muted.light}
	c.Text(titles, 1, c.Max.Y-line/3, plots.Start, y.title)
	c.Text(titles, c.Max.X-8, line/2, plots.End, x.title)
	return c
}

// grid draws a line across for every tick of the vertical axis.
type grid struct{}

func (grid) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	style := draw.LineStyle{Color: rule.light, Width: 1}
	for _, tick := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if tick.IsMinor() {
			continue
		}
		c.StrokeLine2(style, c.Min.X, y(tick.Value), c.Max.X, y(tick.Value))
	}
}

// evenTicks are at most about n round numbers from low to high.
func evenTicks(low, high float64, n int, label func(float64) string) []plot.Tick {
	step := roundStep((high - low) / float64(n))
	var ticks []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9); i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: label(i * step)})
	}
	return ticks
}

// roundStep is the smallest 1, 2 or 5 times a power of ten that is at least least.
func roundStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, step := range []float64{1, 2, 5} {
		if step*power >= least*(1-1e-9) {
			return step * power
		}
	}
	return 10 * power
}

// tiny is the least span of an axis, whatever its unit. Steps far smaller end in zeros, and ticks would never end.
const tiny = 1e-9

// linear is an axis from low, or 0 when that is lower, to a round number not below high.
func linear(low, high float64, n int, title string) axis {
	low = min(low, 0)
	if high-low < tiny {
		high = low + 1
	}
	step := roundStep((high - low) / float64(n))
	low, high = math.Floor(low/step)*step, math.Ceil(high/step-1e-9)*step
	return axis{low, high, plot.LinearScale{}, evenTicks(low, high, n, plots.Short), title}
}

// logarithmic is an axis between powers of ten, or 2 or 5 times those, around low and high, both above 0.
func logarithmic(low, high float64, title string) axis {
	steps := []float64{1, 2, 5}
	if math.Log10(high/low) > 3.5 {
		steps = []float64{1}
	}
	a := axis{scale: logScale{}, title: title}
	var all []float64
	for power := math.Pow(10, math.Floor(math.Log10(low)+1e-9)); power <= 10*high; power *= 10 {
		for _, step := range steps {
			all = append(all, step*power)
		}
	}
	for i, v := range all {
		if i+1 < len(all) && all[i+1] <= low {
			continue
		}
		a.ticks = append(a.ticks, plot.Tick{Value: v, Label: plots.Significant(v)})
		if v >= high*(1-1e-9) && len(a.ticks) > 1 {
			break
		}
	}
	a.from, a.to = a.ticks[0].Value, a.ticks[len(a.ticks)-1].Value
	const most = 12 // labels that have room
	every := (len(a.ticks) + most - 1) / most
	for i := range a.ticks {
		if (len(a.ticks)-1-i)%every != 0 {
			a.ticks[i].Label = ""
		}
	}
	return a
}

// logScale is logarithmic. What lies below the axis, such as a latency of 0, stands at its foot.
type logScale struct{}

// Normalize implements plot.Normalizer.
func (logScale) Normalize(low, high, v float64) float64 {
	return math.Log(max(v, low)/low) / math.Log(high/low)
}
