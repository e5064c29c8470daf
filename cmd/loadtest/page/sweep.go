package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/babelpool/babelpool/internal/plots"
)

// sweep draws one heat map for every batch size. All have the same rows, columns and scale, so that they compare by
// place and by colour.
func sweep(p Page) (section, error) {
	if len(p.Sweep) == 0 {
		return section{}, nil
	}
	g := gridOf(p.Sweep)
	s := section{Heading: "Sweep of settings", Class: "sweep", Text: "Messages per second by concurrency (upwards) and prefetch (to the right)."}
	if winners := g.winners(); winners != "" {
		s.Text += " " + winners
	}
	for _, batch := range g.batches {
		name := "Batch size " + setting(batch)
		if batch == 0 {
			name = "Default batch size"
		}
		label := fmt.Sprintf("Heat map of messages per second, %s: %d values of concurrency by %d of prefetch. %s The table below has the numbers.",
			strings.ToLower(name), len(g.rows), len(g.columns), g.winners())
		wide, narrow, err := both(label, func(narrow bool) *plots.Canvas { return g.draw(batch, narrow) })
		if err != nil {
			return section{}, err
		}
		t := table{Head: []string{"Concurrency", "Prefetch", "Messages per second", "Best"}}
		for _, c := range g.cells {
			if c.Batch == batch {
				mark := ""
				if c.Best {
					mark = "best"
				}
				t.Rows = append(t.Rows, []string{setting(c.Concurrency), setting(c.Prefetch), plots.Count(c.PerSecond), mark})
			}
		}
		s.Charts = append(s.Charts, chart{Heading: name, Wide: wide, Narrow: narrow, Table: t})
	}
	return s, nil
}

// place is where a cell stands.
type place struct{ concurrency, prefetch, batch int }

// cellGrid is a sweep put in order.
type cellGrid struct {
	rows, columns, batches []int
	cells                  []Cell // sorted
	shown                  map[place]Cell
	low, high              float64
}

func gridOf(cells []Cell) *cellGrid {
	g := &cellGrid{cells: slices.Clone(cells), shown: make(map[place]Cell), low: math.Inf(1), high: math.Inf(-1)}
	for _, c := range cells {
		at := place{c.Concurrency, c.Prefetch, c.Batch}
		if before, ok := g.shown[at]; !ok || c.Best || !before.Best {
			g.shown[at] = c
		}
		g.rows, g.columns, g.batches = append(g.rows, c.Concurrency), append(g.columns, c.Prefetch), append(g.batches, c.Batch)
	}
	for _, c := range g.shown {
		if drawable(c.PerSecond) {
			g.low, g.high = min(g.low, c.PerSecond), max(g.high, c.PerSecond)
		}
	}
	for _, values := range []*[]int{&g.rows, &g.columns, &g.batches} {
		slices.Sort(*values)
		*values = slices.Compact(*values)
	}
	slices.SortStableFunc(g.cells, func(a, b Cell) int {
		return slices.Compare([]int{a.Batch, a.Concurrency, a.Prefetch}, []int{b.Batch, b.Concurrency, b.Prefetch})
	})
	return g
}

// winners says which settings are the best.
func (g *cellGrid) winners() string {
	var parts []string
	for _, c := range g.cells {
		if c.Best {
			parts = append(parts, fmt.Sprintf("concurrency %s, prefetch %s, batch size %s with %s messages per second",
				setting(c.Concurrency), setting(c.Prefetch), setting(c.Batch), plots.Count(c.PerSecond)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Best: " + strings.Join(parts, "; ") + "."
}

// draw draws the map of one batch size.
func (g *cellGrid) draw(batch int, narrow bool) *plots.Canvas {
	width, height, size := vg.Length(62), vg.Length(38), 13.0
	if len(g.columns) > 6 {
		width = 56 // two maps of eight columns stand side by side
	}
	if narrow {
		width, height, size = 37, 34, 11 // eight columns fit a phone
		if room := 296 / vg.Length(len(g.columns)); room > width {
			width = min(room, 62)
		}
	}
	labels := plots.Font{Size: size, Color: muted.light}
	left, line := vg.Length(size), vg.Length(size*1.9)
	for _, row := range g.rows {
		left = max(left, vg.Length(labels.Width(setting(row)))+8)
	}
	for _, column := range g.columns {
		width = max(width, vg.Length(labels.Width(setting(column)))+6)
	}
	full := left + width*vg.Length(len(g.columns)) + 3
	full = max(full, vg.Length(max(labels.Width(rowTitle), labels.Width(columnTitle)))+4)
	c := plots.New(float64(full), float64(height*vg.Length(len(g.rows))+3*line))
	c.Text(labels, 0, c.Max.Y-line/2, plots.Start, rowTitle)
	c.Text(labels, left, line/2, plots.Start, columnTitle)

	x := func(column int) vg.Length { return left + width*vg.Length(column) }
	y := func(row int) vg.Length { return 2*line + height*vg.Length(row) }
	for i, row := range g.rows {
		c.Text(labels, left-8, y(i)+height/2, plots.End, setting(row))
	}
	for i, column := range g.columns {
		c.Text(labels, x(i)+width/2, 2*line-line/2, plots.Middle, setting(column))
	}
	for i, row := range g.rows {
		for j, column := range g.columns {
			area := plots.Rectangle(x(j)+1.5, y(i)+1.5, x(j)+width-1.5, y(i)+height-1.5)
			cell, ok := g.shown[place{row, column, batch}]
			g.drawCell(c, area, cell, ok, size)
		}
	}
	return c
}

const (
	rowTitle    = "concurrency ↑"
	columnTitle = "prefetch →"
)

func (g *cellGrid) drawCell(c *plots.Canvas, area vg.Rectangle, cell Cell, tried bool, size float64) {
	text := plots.Font{Size: size, Color: ink.light, Bold: cell.Best}
	if !tried || !drawable(cell.PerSecond) {
		c.Frame(area, 3, draw.LineStyle{Color: rule.light, Width: 1})
	} else {
		step := g.step(cell.PerSecond)
		if step >= inkSteps {
			text.Color = paper.light
		}
		c.Box(area, 3, heat[step].light)
	}
	if !tried {
		return
	}
	if cell.Best {
		c.Frame(area, 3, draw.LineStyle{Color: best.light, Width: 3})
	}
	middle := vg.Point{X: (area.Min.X + area.Max.X) / 2, Y: (area.Min.Y + area.Max.Y) / 2}
	c.Text(text, middle.X, middle.Y, plots.Middle, plots.Short(cell.PerSecond))
}

// step is the heat of a value. Where all values are equal it is the middle.
func (g *cellGrid) step(v float64) int {
	if g.high <= g.low {
		return len(heat) / 2
	}
	return min(int((v-g.low)/(g.high-g.low)*float64(len(heat))), len(heat)-1)
}

// setting is a value of a setting, where 0 stands for its default.
func setting(v int) string {
	if v == 0 {
		return "default"
	}
	if v < 10_000 && v > -10_000 {
		return strconv.Itoa(v)
	}
	return plots.Count(float64(v))
}
