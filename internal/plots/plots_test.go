package plots

import (
	"encoding/xml"
	"errors"
	"image/color"
	"io"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var red = color.NRGBA{R: 0xff, A: 0xff}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v                         float64
		count, short, significant string
	}{
		{0, "0", "0", "0"},
		{-0.2, "0", "-0.2", "-0.2"},
		{0.12345, "0", "0.123", "0.123"},
		{9.996, "10", "10", "10"},
		{12.34, "12", "12.3", "12.3"},
		{100, "100", "100", "100"},
		{99.97, "100", "100", "100"},
		{999.4, "999", "999", "999"},
		{999.6, "1,000", "1k", "1,000"},
		{9870, "9,870", "9.87k", "9,870"},
		{-9870, "-9,870", "-9.87k", "-9,870"},
		{180_944, "180,944", "181k", "180,944"},
		{999_600, "999,600", "1M", "999,600"},
		{1.2e6, "1,200,000", "1.2M", "1,200,000"},
		{1e-7, "0", "0", "0"},
		{3e15, "3,000,000,000,000,000", "3e+15", "3,000,000,000,000,000"},
		{math.NaN(), "–", "–", "–"},
		{math.Inf(-1), "–", "–", "–"},
	} {
		if got := [3]string{Count(c.v), Short(c.v), Significant(c.v)}; got != [3]string{c.count, c.short, c.significant} {
			t.Errorf("%g: %q, want %q", c.v, got, [3]string{c.count, c.short, c.significant})
		}
	}
}

func TestCleanTextIsOneLineThatXMLAllows(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain – ünïcödé 🙂":      "plain – ünïcödé 🙂",
		"a\x00b\r\nc\td\x1b\x7f": "a b  c d  ",
		"a\u2028b\u2029c\u0085":  "a b c ",
		"\xff\xfe":               "\uFFFD",
		"\uffff\ufffe\U0001ffff": "   ",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestFitKeepsWhatFits(t *testing.T) {
	t.Parallel()
	f := Font{Size: 12}
	if got := f.Fit("short", 100); got != "short" {
		t.Errorf("got %q", got)
	}
	for _, width := range []float64{0, 5, 40, 99.5} {
		got := f.Fit(strings.Repeat("long text ", 9), width)
		if !strings.HasSuffix(got, "…") || strings.HasSuffix(got, " …") || (got != "…" && f.Width(got) > width) {
			t.Errorf("in %g pixels: %q of %g", width, got, f.Width(got))
		}
	}
	if bold := (Font{Size: 12, Bold: true}); bold.Width("width") <= f.Width("width") {
		t.Error("bold text is not measured as such")
	}
}

func TestSVGStandsAlone(t *testing.T) {
	t.Parallel()
	c := New(100, 50)
	c.Box(Rectangle(0, 0, 10, 10), 0, red)
	hostile := `" style="fill:#FF0000" onload='x' </text><script>` + "\x00\xff"
	c.Text(Font{Size: 10, Bold: true, Color: red}, 0, 5, Start, hostile)
	c.Text(Font{Size: 10, Color: red}, 100, 5, End, "end")
	svg, err := c.SVG(hostile, func(hex string) string { return "var(--x" + strings.TrimPrefix(hex, "#") + ")" })
	if err != nil {
		t.Fatal(err)
	}
	var elements, texts []string
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements = append(elements, token.Name.Local)
			for _, a := range token.Attr {
				if a.Name.Local == "style" && (strings.Contains(a.Value, "font-family") || !strings.Contains(a.Value, "fill:var(--xFF0000)")) {
					t.Errorf("style %q", a.Value)
				}
				if a.Name.Local == "id" || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("attribute %s", a.Name.Local)
				}
				if a.Name.Local == "aria-label" && a.Value != Clean(hostile) {
					t.Errorf("label %q", a.Value)
				}
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(token)); s != "" {
				texts = append(texts, s)
			}
		}
	}
	if got := strings.Join(elements, " "); got != "svg g path text text" {
		t.Errorf("elements %q", got)
	}
	if len(texts) != 2 || texts[0] != strings.TrimSpace(Clean(hostile)) || texts[1] != "end" {
		t.Errorf("texts %q", texts)
	}
	if strings.Count(svg, "http") != 1 || !strings.HasPrefix(svg, `<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50" viewBox="0 0 100 50" `) {
		t.Errorf("the picture starts with %.120s", svg)
	}
}

func TestColoursStayWithoutAPaint(t *testing.T) {
	t.Parallel()
	c := New(10, 10)
	c.Box(Rectangle(1, 2, 9, 8), 1, red)
	svg, err := c.SVG("a box", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(svg, `style="fill:#FF0000"`) || !strings.Contains(svg, "M2,2L8,2Q9,2,9,3L9,7Q9,8,8,8L2,8Q1,8,1,7L1,3Q1,2,2,2Z") {
		t.Errorf("got %s", svg)
	}
}
