package page

import (
	"bytes"
	_ "embed" // for the template and its style
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/babelpool/babelpool/internal/plots"
)

// Page is what a page shows. What is empty is left out.
type Page struct {
	Title      string
	Facts      [][2]string // name and value, in this order
	Throughput []Series    // lines over time
	Latency    []Point     // X is the percentile, 0 to 100, where 100 is the highest latency; Y is in milliseconds
	Sweep      []Cell
}

// Series is a line. X is in seconds since the start, Y in messages a second. The points may come in any order.
type Series struct {
	Name   string
	Points []Point
}

// Point is a point of a chart. One with a NaN or an infinity is not drawn; where it stood a line has a gap.
type Point struct{ X, Y float64 }

// Cell is one setting of a sweep and its messages a second. Of several cells with the same setting the heat map shows
// the best, or else the last; the table has them all. 0 is shown as "default".
type Cell struct {
	Concurrency, Prefetch, Batch int
	PerSecond                    float64
	Best                         bool
}

//go:embed page.gohtml
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// view is what the template shows.
type view struct {
	Title    string
	Style    template.CSS
	Facts    [][2]string
	Sections []section
}

// section is a heading with charts beneath.
type section struct {
	Heading string
	Class   string // for the style
	Text    string // says what the charts show
	Legend  []key
	Charts  []chart
}

// key is a line of a legend.
type key struct {
	Name string
	Look template.CSS
}

// chart is a drawing for wide screens, one for narrow screens, and the numbers.
type chart struct {
	Heading      string
	Wide, Narrow template.HTML
	Table        table
}

// table is the numbers of a chart.
type table struct {
	Head []string
	Rows [][]string
}

// Write writes the page. Nothing is written when it cannot be made; otherwise the error is w's.
func Write(w io.Writer, p Page) error {
	v := view{Title: plots.Clean(p.Title), Style: template.CSS(schemes() + pageCSS)} //nolint:gosec // made of constants
	for _, fact := range p.Facts {
		v.Facts = append(v.Facts, [2]string{plots.Clean(fact[0]), plots.Clean(fact[1])})
	}
	for _, draw := range []func(Page) (section, error){throughput, latency, sweep} {
		s, err := draw(p)
		if err != nil {
			return fmt.Errorf("page: %w", err)
		}
		if len(s.Charts) > 0 {
			v.Sections = append(v.Sections, s)
		}
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, v); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	if _, err := out.WriteTo(w); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// both draws a chart for wide and for narrow screens.
func both(label string, draw func(narrow bool) *plots.Canvas) (wide, narrow template.HTML, err error) {
	var out [2]template.HTML
	for i := range out {
		svg, err := draw(i == 1).SVG(label, themed)
		if err != nil {
			return "", "", err
		}
		out[i] = template.HTML(svg) //nolint:gosec // plots escapes every text in it
	}
	return out[0], out[1], nil
}

// drawable says whether a value can stand on an axis. Beyond the limit no measurement lies, and the arithmetic of axes
// could overflow.
func drawable(v float64) bool { return math.Abs(v) < 1e15 } // false for NaN
