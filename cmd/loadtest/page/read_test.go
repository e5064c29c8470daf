package page

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/internal/plots"
)

// element is a node of a page that was read back.
type element struct {
	name     string
	attrs    map[string]string
	children []*element
	text     string // its own and everything's below
}

// all finds the elements of a name below e, in the page's order.
func (e *element) all(name string) []*element {
	var found []*element
	for _, c := range e.children {
		if c.name == name {
			found = append(found, c)
		}
		found = append(found, c.all(name)...)
	}
	return found
}

func texts(elements []*element) []string {
	var out []string
	for _, e := range elements {
		out = append(out, e.text)
	}
	return out
}

// written writes the page and reads it back, and fails the test when the page is malformed, asks for anything outside
// itself, or draws outside its charts.
func written(t *testing.T, p Page) *element {
	t.Helper()
	var out strings.Builder
	if err := Write(&out, p); err != nil {
		t.Fatal(err)
	}
	root := parsed(t, out.String())
	checkContained(t, root)
	for _, svg := range root.all("svg") {
		checkDrawing(t, svg)
	}
	return root
}

// parsed reads a page. Its own elements may be void as in HTML; what is within svg must be strict XML.
func parsed(t *testing.T, page string) *element {
	t.Helper()
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1) {
		decoded(t, xml.NewDecoder(strings.NewReader(svg)))
	}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	return decoded(t, d)
}

func decoded(t *testing.T, d *xml.Decoder) *element {
	t.Helper()
	stack := []*element{{}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is malformed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attrs: make(map[string]string)}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			top := stack[len(stack)-1]
			top.children = append(top.children, e)
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			for _, e := range stack {
				e.text += string(token)
			}
		}
	}
	if len(stack) != 1 {
		t.Fatalf("%d elements stay open", len(stack)-1)
	}
	return stack[0]
}

// checkContained looks for anything that loads, runs, or has a name that another chart could have too.
func checkContained(t *testing.T, e *element) {
	t.Helper()
	known := "html head meta title style body main h1 h2 table thead tbody tr th td section p ul li span div figure figcaption " +
		"details summary svg g path text"
	for _, c := range e.children {
		if !strings.Contains(" "+known+" ", " "+c.name+" ") {
			t.Errorf("the page has an element %q", c.name)
		}
		for name, value := range c.attrs {
			if !regexp.MustCompile(`^(lang|charset|name|content|http-equiv|scope|style|class|tabindex|xmlns|width|height|viewBox|`+
				`role|aria-label|font-family|open|transform|d|x|y)$`).MatchString(name) || strings.Contains(value, "url(") {
				t.Errorf("%s has an attribute %s=%q", c.name, name, value)
			}
		}
		if c.name == "style" && regexp.MustCompile(`url\(|@import|//`).MatchString(c.text) {
			t.Error("the style sheet refers to something outside")
		}
		checkContained(t, c)
	}
}

var (
	pathNumber = regexp.MustCompile(`[-+0-9.e]+`)
	fontSize   = regexp.MustCompile(`font-size:([0-9.]+)px`)
)

// checkDrawing wants a description, colours that follow the scheme, every stroke and letter inside the chart, and
// no text over another.
func checkDrawing(t *testing.T, svg *element) {
	t.Helper()
	width, height := number(t, svg.attrs["width"]), number(t, svg.attrs["height"])
	if svg.attrs["role"] != "img" || svg.attrs["aria-label"] == "" {
		t.Error("a chart says nothing to a screen reader")
	}
	for _, path := range svg.all("path") {
		if d := path.attrs["d"]; strings.Contains(d, "NaN") || strings.Contains(d, "Inf") {
			t.Errorf("a path has no place: %s", d)
		}
		for _, s := range pathNumber.FindAllString(path.attrs["d"], -1) {
			if v := number(t, s); v < -0.5 || v > max(width, height)+0.5 {
				t.Errorf("a path of a chart of %g by %g leaves it: %s", width, height, path.attrs["d"])
			}
		}
	}
	for _, e := range append(svg.all("path"), svg.all("text")...) {
		if strings.Contains(e.attrs["style"], "#") {
			t.Errorf("a colour does not follow the scheme: %s", e.attrs["style"])
		}
	}
	type box struct {
		left, bottom, right, top float64
		text                     string
	}
	var boxes []box
	for _, text := range svg.all("text") {
		size := fontSize.FindStringSubmatch(text.attrs["style"])
		if size == nil {
			t.Fatalf("a text has no size: %v", text.attrs)
		}
		font := plots.Font{Size: number(t, size[1]), Bold: strings.Contains(text.attrs["style"], "bold")}
		x, y := number(t, text.attrs["x"]), -number(t, text.attrs["y"])
		if x < -1 || x+font.Width(text.text) > width+1 || y < 0 || y > height {
			t.Errorf("%q at %g, %g is cut off in a chart of %g by %g", text.text, x, y, width, height)
		}
		b := box{x, y - 0.2*font.Size, x + font.Width(text.text), y + 0.75*font.Size, text.text}
		for _, other := range boxes {
			if b.left < other.right && other.left < b.right && b.bottom < other.top && other.bottom < b.top {
				t.Errorf("%q lies over %q in a chart of %g by %g", b.text, other.text, width, height)
			}
		}
		boxes = append(boxes, b)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatalf("%q is no number", s)
	}
	return v
}
