package plots

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"regexp"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// FontFamily is the CSS font stack of every text in a drawing. Texts are placed by the widths of Liberation Sans; these
// families have the same widths, and one of them or a close relative is part of nearly every system.
const FontFamily = "Arial, Helvetica, 'Liberation Sans', sans-serif"

// Canvas is a drawing of a fixed size. It is not safe for concurrent use.
type Canvas struct {
	draw.Canvas
	svg           *vgsvg.Canvas
	width, height float64
}

// New makes an empty, transparent canvas. Width and height are in pixels and must be above 0.
func New(width, height float64) *Canvas {
	svg := vgsvg.New(vg.Length(width), vg.Length(height))
	return &Canvas{Canvas: draw.New(svg), svg: svg, width: width, height: height}
}

// Box fills a rectangle, its corners rounded by radius.
func (c *Canvas) Box(area vg.Rectangle, radius vg.Length, fill color.Color) {
	c.SetColor(fill)
	c.Fill(rounded(area, radius))
}

// Frame draws the outline of a rectangle, its corners rounded by radius.
func (c *Canvas) Frame(area vg.Rectangle, radius vg.Length, line draw.LineStyle) {
	c.SetLineStyle(line)
	c.Stroke(rounded(area, radius))
}

func rounded(area vg.Rectangle, radius vg.Length) vg.Path {
	low, high := area.Min, area.Max
	r := min(radius, (high.X-low.X)/2, (high.Y-low.Y)/2)
	var p vg.Path
	p.Move(vg.Point{X: low.X + r, Y: low.Y})
	side := func(to, corner, after vg.Point) {
		p.Line(to)
		if r > 0 {
			p.QuadTo(corner, after)
		}
	}
	side(vg.Point{X: high.X - r, Y: low.Y}, vg.Point{X: high.X, Y: low.Y}, vg.Point{X: high.X, Y: low.Y + r})
	side(vg.Point{X: high.X, Y: high.Y - r}, high, vg.Point{X: high.X - r, Y: high.Y})
	side(vg.Point{X: low.X + r, Y: high.Y}, vg.Point{X: low.X, Y: high.Y}, vg.Point{X: low.X, Y: high.Y - r})
	side(vg.Point{X: low.X, Y: low.Y + r}, low, vg.Point{X: low.X + r, Y: low.Y})
	p.Close()
	return p
}

// Rectangle is the rectangle between two opposite corners, the lower left one first.
func Rectangle(left, bottom, right, top vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: left, Y: bottom}, Max: vg.Point{X: right, Y: top}}
}

// Paint maps a colour of the drawing, such as #1F2328, to what stands in its place, such as var(--ink). What it returns
// must be safe inside a style attribute.
type Paint func(hex string) string

// SVG is the drawing as one svg element. Label is what a screen reader says instead of the picture. A nil paint keeps
// the colours.
func (c *Canvas) SVG(label string, paint Paint) (string, error) {
	var out bytes.Buffer
	if _, err := c.svg.WriteTo(&out); err != nil {
		return "", fmt.Errorf("plots: %w", err)
	}
	// The writer's own opening tag goes: it counts in points, and needs an XML declaration before it.
	_, rest, _ := strings.Cut(out.String(), "<svg")
	_, body, _ := strings.Cut(rest, ">")
	body = styles.ReplaceAllStringFunc(body, func(style string) string { return restyled(style, paint) })
	open := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" role="img" `+
		`aria-label="%s" font-family="%s">`, c.width, c.height, c.width, c.height, html.EscapeString(Clean(label)), FontFamily)
	return open + body, nil
}

// styles finds style attributes. The writer escapes quotes in texts, so none of them can look like one.
var styles = regexp.MustCompile(`\s*style="[^"]*"`)

// restyled leaves the font to the svg element, sizes and weights aside, and paints the colours.
func restyled(attribute string, paint Paint) string {
	_, value, _ := strings.Cut(attribute, `"`)
	var kept []string
	for declaration := range strings.SplitSeq(strings.TrimSuffix(value, `"`), ";") {
		name, value, _ := strings.Cut(declaration, ":")
		switch {
		case name == "font-family", name == "font-variant", name == "font-style", name == "font-weight" && value == "normal":
			continue
		case strings.HasPrefix(value, "#") && paint != nil:
			value = paint(value)
		}
		kept = append(kept, name+":"+value)
	}
	if len(kept) == 0 {
		return ""
	}
	return ` style="` + strings.Join(kept, ";") + `"`
}
