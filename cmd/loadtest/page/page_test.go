package page

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// full is a page with everything.
func full() Page {
	p := Page{
		Title: "Load test",
		Facts: [][2]string{{"Layout", "legacy"}, {"Published", "200,000"}},
		Latency: []Point{
			{0, 0.21}, {50, 0.9}, {75, 1.4}, {90, 2.3}, {99, 11.2}, {99.9, 48}, {99.99, 230.4}, {100, 412.9},
		},
	}
	published, acked := Series{Name: "published"}, Series{Name: "acked"}
	for i := range 300 {
		at := float64(i) * 0.2
		published.Points = append(published.Points, Point{at, 42_000 + 900*math.Sin(at)})
		acked.Points = append(acked.Points, Point{at, 40_000 + 1200*math.Cos(at)})
	}
	p.Throughput = []Series{published, acked}
	for _, batch := range []int{64, 128, 256} {
		for row := range 8 {
			for column := range 8 {
				p.Sweep = append(p.Sweep, Cell{
					Concurrency: 1 << row, Prefetch: 16 << column, Batch: batch, PerSecond: float64(9000*(row+1) + 7000*column + batch),
					Best: batch == 256 && row == 7 && column == 7,
				})
			}
		}
	}
	return p
}

func TestAFullPage(t *testing.T) {
	t.Parallel()
	root := written(t, full())
	if got := texts(root.all("h1")); !slices.Equal(got, []string{"Load test"}) {
		t.Errorf("headings %q", got)
	}
	if got := texts(root.all("title")); !slices.Equal(got, []string{"Load test"}) {
		t.Errorf("titles %q", got)
	}
	facts := root.all("table")[0]
	if got := append(texts(facts.all("th")), texts(facts.all("td"))...); !slices.Equal(got, []string{"Layout", "Published", "legacy", "200,000"}) {
		t.Errorf("facts %q", got)
	}
	type shape struct {
		Heading           string
		Charts, SVGs      int
		FirstRows, Legend int
		Head, FirstRow    []string
	}
	var got []shape
	for _, s := range root.all("section") {
		details := s.all("details")[0]
		rows := details.all("tbody")[0].all("tr")
		got = append(got, shape{
			s.all("h2")[0].text, len(s.all("figure")), len(s.all("svg")), len(rows), len(s.all("li")),
			texts(details.all("th")), texts(rows[0].all("td")),
		})
	}
	want := []shape{
		{"Throughput", 1, 2, 300, 2, []string{"Seconds", "published", "acked"}, []string{"0", "42,000", "41,200"}},
		{"Latency", 1, 2, 8, 0, []string{"Percentile", "Milliseconds"}, []string{"0", "0.21"}},
		{
			"Sweep of settings", 3, 6, 64, 0, []string{"Concurrency", "Prefetch", "Messages per second", "Best"},
			[]string{"1", "16", "9,064", ""},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEmptySectionsAreLeftOut(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for name, c := range map[string]struct {
		page Page
		want []string
	}{
		"nothing":               {Page{Title: "x"}, nil},
		"no points":             {Page{Throughput: []Series{{Name: "a"}}, Latency: []Point{}, Sweep: []Cell{}}, nil},
		"no numbers":            {Page{Throughput: []Series{{"a", []Point{{1, nan}, {nan, 1}}}}, Latency: []Point{{50, nan}, {-1, 2}, {101, 2}}}, nil},
		"throughput":            {Page{Throughput: []Series{{"a", []Point{{1, 1}}}}}, []string{"Throughput"}},
		"latency":               {Page{Latency: []Point{{50, 1}}}, []string{"Latency"}},
		"sweep without numbers": {Page{Sweep: []Cell{{1, 1, 1, nan, false}}}, []string{"Sweep of settings"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := written(t, c.page)
			if got := texts(root.all("h2")); !slices.Equal(got, c.want) {
				t.Errorf("sections %q, want %q", got, c.want)
			}
			if got := len(root.all("table")); got != len(c.want) {
				t.Errorf("%d tables for %d sections and no facts", got, len(c.want))
			}
		})
	}
}

func TestTextsAreEscaped(t *testing.T) {
	t.Parallel()
	hostile := `</title></style></text></svg><script>alert(1)</script><img src=http://evil.example/ onerror="x">&amp;'"` +
		"\x00\x1b\r\n\u2028\uffff\xff" + strings.Repeat("very long ", 40)
	p := full()
	p.Title = hostile
	p.Facts = append(p.Facts, [2]string{hostile, hostile})
	p.Throughput[0].Name = hostile
	root := written(t, p) // and this looks for elements and attributes that have no business there
	clean := root.all("h1")[0].text
	if !strings.Contains(clean, `<script>alert(1)</script>`) || !strings.Contains(clean, `&amp;'"`) {
		t.Errorf("the title lost something: %q", clean)
	}
	for _, got := range []string{root.all("title")[0].text, root.all("li")[0].text, root.all("td")[2].text} {
		if strings.TrimSpace(got) != strings.TrimSpace(clean) {
			t.Errorf("%q differs from %q", got, clean)
		}
	}
}

func TestAWriterThatFails(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	if err := Write(failing{full}, Page{}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestValuesOfAllKinds relies on the checks of written: well-formed, nothing undefined, nothing outside its chart.
func TestValuesOfAllKinds(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	kinds := map[string][]float64{
		"one": {7}, "zero": {0, 0, 0}, "equal": {5, 5, 5}, "gaps": {1, nan, 3, inf, -inf, 4}, "negative": {-5, -1, -3},
		"mixed": {-5, 10}, "tiny": {5e-324, 1e-320}, "huge": {1e14, 9e14, math.MaxFloat64}, "both": {1e-6, 0, 9e14},
		"decades": {0.01, 0.3, 14, 2000, 70_000}, "close": {1e12, 1e12 + 1e-3},
	}
	for name, values := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Page{}
			for i, v := range values {
				p.Latency = append(p.Latency, Point{[]float64{50, 90, 90, 99.999999999999, 100, 100}[i], v})
				p.Sweep = append(p.Sweep, Cell{Concurrency: i, Prefetch: 1 << (i * 6), Batch: i % 2, PerSecond: v, Best: i == 0})
			}
			for i, times := range [][]float64{{0, 1, 2, 3, 4, 5}, {9, 8, 7, 6, 5, 4}, values, {4000, 4000, 4000, 4000, 4000, 4001}, {7e5, 8e5, 9e5, 1e6, nan, inf}} {
				var s Series
				for j, v := range values {
					s.Points = append(s.Points, Point{times[j], v})
				}
				p.Throughput = []Series{s, {Name: "flat", Points: []Point{{times[0], 1}}}}
				root := written(t, p)
				if got := len(root.all("section")); got != 3 {
					t.Errorf("times %d: %d sections", i, got)
				}
			}
		})
	}
}
