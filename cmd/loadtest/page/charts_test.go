package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// drawnTexts are the texts of the wide and of the narrow drawing of a section's first chart.
func drawnTexts(root *element) [2][]string {
	svgs := root.all("svg")
	return [2][]string{texts(svgs[0].all("text")), texts(svgs[1].all("text"))}
}

func TestLatencyHasATickForEveryNine(t *testing.T) {
	t.Parallel()
	got := drawnTexts(written(t, Page{Latency: full().Latency}))
	for i, texts := range got {
		for _, want := range []string{"50", "90", "99", "99.9", "99.99", "max", "percentile", "milliseconds, logarithmic", "11.2", "413"} {
			if !slices.Contains(texts, want) {
				t.Errorf("drawing %d lacks %q in %q", i, want, texts)
			}
		}
	}
}

func TestNinesAreEquallyFarApart(t *testing.T) {
	t.Parallel()
	a := nines([]Point{{99.99, 1}, {100, 2}})
	for percentile, want := range map[float64]float64{0: 0, 50: 0.0602, 90: 0.2, 99: 0.4, 99.9: 0.6, 99.99: 0.8, 100: 1} {
		if got := a.scale.Normalize(a.from, a.to, percentile); math.Abs(got-want) > 1e-4 {
			t.Errorf("%g stands at %g of the axis, want %g", percentile, got, want)
		}
	}
	if got := nines([]Point{{10, 1}}).to; got != 2 {
		t.Errorf("an axis for little data ends at %g nines, want 2", got)
	}
}

func TestLatencyIsLogarithmicWhenItSpansDecades(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		low, high float64
		want      bool
	}{{1, 20, false}, {1, 40, true}, {0, 5, false}, {-1, 500, false}, {0.5, 0.5, false}} {
		a := latencyAxis([]Point{{50, c.low}, {99, c.high}})
		if _, got := a.scale.(logScale); got != c.want {
			t.Errorf("%g to %g ms: logarithmic is %v", c.low, c.high, got)
		}
		if a.from > c.low || a.to < c.high {
			t.Errorf("%g to %g ms: the axis goes from %g to %g", c.low, c.high, a.from, a.to)
		}
	}
	a := latencyAxis([]Point{{0, 0}, {50, 0.3}, {99, 40}})
	if a.from != 0.2 || a.to != 50 || a.scale.Normalize(a.from, a.to, 0) != 0 {
		t.Errorf("a latency of 0 beside others: the axis goes from %g to %g, and 0 stands at %g",
			a.from, a.to, a.scale.Normalize(a.from, a.to, 0))
	}
}

func TestALineHasAGapWhereAValueIsMissing(t *testing.T) {
	t.Parallel()
	points := []Point{{3, 3}, {4, math.NaN()}, {5, 5}, {6, math.Inf(1)}, {7, 7}, {8, 8}, {1, 1}}
	root := written(t, Page{Throughput: []Series{{"a", points}}})
	var strokes, dots int
	for _, path := range root.all("svg")[0].all("path") {
		switch style := path.attrs["style"]; {
		case strings.Contains(style, "stroke:var(--line0)"):
			strokes++
		case strings.Contains(style, "fill:var(--line0)"):
			dots++
		}
	}
	if strokes != 2 || dots != 1 {
		t.Errorf("%d lines and %d dots, want 1–3, 7–8 and the dot 5", strokes, dots)
	}
	var rows []string
	for _, row := range root.all("tbody")[0].all("tr") {
		rows = append(rows, strings.Join(texts(row.all("td")), ":"))
	}
	if want := []string{"1:1", "3:3", "4:–", "5:5", "6:–", "7:7", "8:8"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

func TestTimeIsInReadableUnits(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{20: "seconds", 900: "minutes", 40_000: "hours"} {
		got := drawnTexts(written(t, Page{Throughput: []Series{{"a", []Point{{0, 1}, {seconds, 2}}}}}))
		if !slices.Contains(got[0], want) || !slices.Contains(got[1], want) {
			t.Errorf("%g s is not in %s: %q", seconds, want, got)
		}
	}
}

func TestSeriesAreToldApart(t *testing.T) {
	t.Parallel()
	p := Page{}
	for i := range 20 {
		p.Throughput = append(p.Throughput, Series{fmt.Sprint("s", i), []Point{{0, float64(i)}, {1, float64(i)}}})
	}
	root := written(t, p)
	looks := make(map[string]bool)
	for _, item := range root.all("li") {
		looks[item.all("span")[0].attrs["style"]] = true
	}
	drawn := make(map[string]bool)
	for _, path := range root.all("svg")[0].all("path") {
		if style := path.attrs["style"]; strings.Contains(style, "stroke:var(--line") {
			drawn[style] = true
		}
	}
	if len(looks) != 20 || len(drawn) != 20 {
		t.Errorf("20 series have %d looks in the legend and %d in the chart", len(looks), len(drawn))
	}
}

func TestSweepMapsShareRowsColumnsAndColours(t *testing.T) {
	t.Parallel()
	root := written(t, Page{Sweep: []Cell{
		{Concurrency: 8, Prefetch: 64, Batch: 1, PerSecond: 1000},
		{Concurrency: 1, Prefetch: 0, Batch: 1, PerSecond: 2000},
		{Concurrency: 8, Prefetch: 64, Batch: 2, PerSecond: 181_234, Best: true},
		{Concurrency: 8, Prefetch: 64, Batch: 2, PerSecond: 5},
		{Concurrency: 1, Prefetch: 64, Batch: 2, PerSecond: math.NaN()},
	}})
	svgs := root.all("svg")
	if got := texts(root.all("figcaption")); !slices.Equal(got, []string{"Batch size 1", "Batch size 2"}) {
		t.Fatalf("maps %q", got)
	}
	for i, want := range []string{
		"concurrency ↑ prefetch → 1 8 default 64 2k 1k",
		"concurrency ↑ prefetch → 1 8 default 64 – 181k",
	} {
		for _, svg := range svgs[2*i : 2*i+2] {
			if got := strings.Join(texts(svg.all("text")), " "); got != want {
				t.Errorf("map %d: %q, want %q", i, got, want)
			}
		}
	}
	marks := func(svg *element, style string) (n int) {
		for _, path := range svg.all("path") {
			if strings.Contains(path.attrs["style"], style) {
				n++
			}
		}
		return n
	}
	if marks(svgs[0], "stroke:var(--best)") != 0 || marks(svgs[2], "stroke:var(--best)") != 1 {
		t.Error("the best cell is not marked, or another is")
	}
	if marks(svgs[0], "fill:var(--heat0)") != 2 || marks(svgs[2], "fill:var(--heat7)") != 1 {
		t.Error("the maps do not share a scale")
	}
	for svg, want := range map[*element]string{svgs[0]: "ink", svgs[2]: "paper"} { // on the lightest and the darkest step
		cells := svg.all("text")
		if style := cells[len(cells)-1].attrs["style"]; !strings.Contains(style, "fill:var(--"+want+")") {
			t.Errorf("the text of a cell is not in %s: %s", want, style)
		}
	}
	if text := root.all("p")[0].text; !strings.Contains(text, "Best: concurrency 8, prefetch 64, batch size 2 with 181,234 messages per second.") {
		t.Errorf("the text does not name the best: %q", text)
	}
}
