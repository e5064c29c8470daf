package page

import (
	"fmt"
	"html/template"
	"image/color"
	"strings"
)

// tint is a colour in the light and in the dark scheme. Charts are drawn in the light one, and every colour of a
// drawing is then replaced by the CSS variable of its tint, so one drawing serves both schemes.
type tint struct {
	name        string
	light, dark color.NRGBA
}

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

var (
	paper = tint{"paper", rgb(0xffffff), rgb(0x0d1117)}
	ink   = tint{"ink", rgb(0x1f2328), rgb(0xe6edf3)}
	muted = tint{"muted", rgb(0x59636e), rgb(0x9198a1)}
	rule  = tint{"rule", rgb(0xdfe3e8), rgb(0x2b3138)}
	best  = tint{"best", rgb(0xd9480f), rgb(0xff9f43)}
)

// lines are the colours of series, told apart with any kind of colour vision as long as there are few.
var lines = []tint{
	{"line0", rgb(0x0b63ce), rgb(0x58a6ff)},
	{"line1", rgb(0xc2410d), rgb(0xff9b5c)},
	{"line2", rgb(0x0f7b53), rgb(0x3fcf8e)},
	{"line3", rgb(0x8a3fd1), rgb(0xc297ff)},
	{"line4", rgb(0x8a6400), rgb(0xe3b341)},
	{"line5", rgb(0xc2255c), rgb(0xff7eb0)},
	{"line6", rgb(0x0b7285), rgb(0x4fd1e0)},
	{"line7", rgb(0x495057), rgb(0xb6bec7)},
}

// heat are the steps of a heat map, low to high. Steps between the fifth and the sixth are left out: no colour of text
// would be legible on them in both schemes.
var heat = heatSteps(0.06, 0.18, 0.30, 0.42, 0.54, 0.80, 0.90, 1)

// inkSteps is how many of the steps carry dark text on light, or light on dark; the others carry text in the colour
// of the paper.
const inkSteps = 5

func heatSteps(shares ...float64) []tint {
	light, dark := rgb(0x0a4fad), rgb(0x58a6ff)
	var steps []tint
	for i, share := range shares {
		steps = append(steps, tint{
			fmt.Sprintf("heat%d", i), mixed(paper.light, light, share), mixed(paper.dark, dark, share),
		})
	}
	return steps
}

func mixed(a, b color.NRGBA, share float64) color.NRGBA {
	part := func(x, y uint8) uint8 { return uint8(float64(x) + share*(float64(y)-float64(x)) + 0.5) }
	return color.NRGBA{R: part(a.R, b.R), G: part(a.G, b.G), B: part(a.B, b.B), A: 0xff}
}

func tints() []tint {
	return append(append([]tint{paper, ink, muted, rule, best}, lines...), heat...)
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

// schemes declares the variables of both schemes. Paper is white: the dark scheme is for screens.
func schemes() string {
	var light, dark strings.Builder
	for _, t := range tints() {
		fmt.Fprintf(&light, "--%s:%s;", t.name, hex(t.light))
		fmt.Fprintf(&dark, "--%s:%s;", t.name, hex(t.dark))
	}
	return ":root{color-scheme:light dark;" + light.String() + "}\n" +
		"@media screen and (prefers-color-scheme:dark){:root{" + dark.String() + "}}\n"
}

// variables finds the variable of a light colour.
var variables = func() map[string]string {
	m := make(map[string]string)
	for _, t := range tints() {
		m[hex(t.light)] = "var(--" + t.name + ")"
	}
	return m
}()

// themed replaces a colour of a drawing by its variable.
func themed(hex string) string {
	if v, ok := variables[hex]; ok {
		return v
	}
	return hex
}

// look is how a legend shows the line of a series: the colour, and a dash once the colours repeat.
func look(i int) template.CSS {
	kinds := []string{"solid", "dashed", "dotted"}
	return template.CSS(fmt.Sprintf("border-top-color:var(--%s);border-top-style:%s", //nolint:gosec // made of constants
		lines[i%len(lines)].name, kinds[i/len(lines)%len(kinds)]))
}
