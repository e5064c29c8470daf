package plots

import (
	"image/color"
	"strings"
	"unicode"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// faces measures texts. A cache of our own, because gonum's shared one can be changed by anybody.
var faces = font.NewCache(liberation.Collection())

// Font says how a text looks.
type Font struct {
	Size  float64 // in pixels
	Bold  bool
	Color color.Color
}

// The anchors of a text: which part of it stands at the given place.
const (
	Start  = 0.0
	Middle = 0.5
	End    = 1.0
)

// Style is the same for a plot's own texts.
func (f Font) Style() text.Style {
	return text.Style{Color: f.Color, Font: f.font(), Handler: text.Plain{Fonts: faces}}
}

// Width is the width of a text in pixels.
func (f Font) Width(s string) float64 {
	face := faces.Lookup(f.font(), vg.Length(f.Size))
	return face.Width(Clean(s)).Points()
}

func (f Font) font() font.Font {
	weight := xfont.WeightNormal
	if f.Bold {
		weight = xfont.WeightBold
	}
	return font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: vg.Length(f.Size)}
}

// Text writes one line. The anchor stands at x, the middle of the digits at y.
func (c *Canvas) Text(f Font, x, y vg.Length, anchor float64, s string) {
	const halfDigit = 0.36 // of the size: half the height of a capital or a digit
	s = Clean(s)
	c.SetColor(f.Color)
	at := vg.Point{X: x - vg.Length(anchor*f.Width(s)), Y: y - vg.Length(halfDigit*f.Size)}
	c.FillString(faces.Lookup(f.font(), vg.Length(f.Size)), at, s)
}

// Fit shortens a text with an ellipsis until it is at most width pixels wide.
func (f Font) Fit(s string, width float64) string {
	s = Clean(s)
	if f.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && f.Width(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return strings.TrimRight(string(runes), " ") + "…"
}

// Clean makes any string one line of valid text: a control character, which XML forbids, becomes a space, and so do
// the non-characters; broken UTF-8 becomes the replacement character.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r&0xfffe == 0xfffe {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
