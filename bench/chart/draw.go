package main

import (
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/babelpool/babelpool/internal/plots"
)

// All measures are in pixels. The width is about that of a README's text, so that the picture is hardly scaled.
const (
	width      = 800
	border     = 24  // between the edge and everything else
	nameWidth  = 216 // of the column of names
	row        = 40  // from bar to bar
	thickness  = 24  // of a bar
	headHeight = 84
	footLine   = 18
)

var (
	background = rgb(0xffffff)
	edge       = rgb(0xd0d7de)
	ink        = rgb(0x1f2328)
	muted      = rgb(0x59636e)
	oursColor  = rgb(0x4493f8)
	peerColor  = rgb(0xb4bdc7)
)

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

// draw draws the bars from top to bottom, and the notes beneath.
func draw(bars []bar, notes []string) (string, error) {
	height := headHeight + row*len(bars) + 14 + footLine*len(notes) + border - 6
	c := plots.New(width, float64(height))
	card := plots.Rectangle(0.5, 0.5, width-0.5, vg.Length(height)-0.5) // inwards by half the line, or that half is cut off
	c.Box(card, 8, background)
	c.Frame(card, 8, vgdraw.LineStyle{Color: edge, Width: 1})
	c.Text(plots.Font{Size: 19, Bold: true, Color: ink}, border, c.Max.Y-34, plots.Start, "Messages consumed per second")
	c.Text(plots.Font{Size: 13, Color: muted}, border, c.Max.Y-58, plots.Start, "Messages are stored first, then a handler decodes each. Longer is better.")

	var most, labels float64
	for _, b := range bars {
		most, labels = max(most, b.high), max(labels, label(b).Width(rate(b)))
	}
	const left = border + nameWidth
	unit := (width - border - left - labels - 10) / most // pixels for a message a second
	for i, b := range bars {
		y := c.Max.Y - headHeight - vg.Length(row*i) - row/2
		name := plots.Font{Size: 14, Bold: b.ours, Color: ink}
		c.Text(name, border, y, plots.Start, name.Fit(b.name, nameWidth-12))
		fill := peerColor
		if b.ours {
			fill = oursColor
		}
		end := left + vg.Length(max(b.median*unit, 1)) // a bar of less than a pixel would look like none
		c.Box(plots.Rectangle(left, y-thickness/2, end, y+thickness/2), 2, fill)
		low, high := left+vg.Length(b.low*unit), left+vg.Length(b.high*unit)
		if high-low >= 1 {
			whisker(c, low, high, y)
		}
		c.Text(label(b), max(end, high)+10, y, plots.Start, rate(b))
	}
	small := plots.Font{Size: 12, Color: muted}
	for i, note := range notes {
		y := vg.Length(border - 6 + footLine*(len(notes)-1-i) + footLine/2)
		c.Text(small, border, y, plots.Start, small.Fit(note, width-2*border))
	}
	return c.SVG(spoken(bars, notes), nil)
}

// whisker shows the lowest and the highest run.
func whisker(c *plots.Canvas, low, high, y vg.Length) {
	line := vgdraw.LineStyle{Color: ink, Width: 1.25}
	c.StrokeLine2(line, low, y, high, y)
	for _, x := range []vg.Length{low, high} {
		c.StrokeLine2(line, x, y-4, x, y+4)
	}
}

func label(b bar) plots.Font { return plots.Font{Size: 14, Bold: b.ours, Color: ink} }

// rate is in three significant digits: the runs differ by more than what is rounded off.
func rate(b bar) string {
	scale := math.Pow(10, max(0, math.Floor(math.Log10(b.median))-2))
	return plots.Count(math.Round(b.median/scale)*scale) + " msg/s"
}

// spoken is the chart in words.
func spoken(bars []bar, notes []string) string {
	parts := make([]string, 0, len(bars))
	for _, b := range bars {
		parts = append(parts, fmt.Sprintf("%s: %s", b.name, rate(b)))
	}
	return "Messages consumed per second. " + strings.Join(append(parts, notes...), "; ") + "."
}
