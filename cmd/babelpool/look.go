package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/lipgloss/table"
	"github.com/dustin/go-humanize"
)

// look is how text looks: plain unless the output is a terminal that has colours and may use them (NO_COLOR).
type look struct {
	r                             *lipgloss.Renderer
	strong, faint, good, bad, mid lipgloss.Style
}

func newLook(r *lipgloss.Renderer) look {
	colour := func(ansi string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(ansi)) }
	return look{
		r: r, strong: r.NewStyle().Bold(true), faint: r.NewStyle().Faint(true),
		good: colour("2"), bad: colour("1").Bold(true), mid: colour("3"),
	}
}

// table draws rows under headings. Columns whose heading begins with ">" are set right.
func (l look) table(headings []string, rows [][]string) string {
	right := make([]bool, len(headings))
	for i, h := range headings {
		headings[i], right[i] = strings.TrimPrefix(h, ">"), strings.HasPrefix(h, ">")
	}
	t := table.New().Border(lipgloss.HiddenBorder()).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		BorderColumn(false).BorderHeader(false).Headers(headings...).Rows(rows...).
		StyleFunc(func(row, col int) lipgloss.Style {
			style := l.r.NewStyle().PaddingRight(2)
			if row == table.HeaderRow {
				style = l.faint.PaddingRight(2)
			}
			if right[col] {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	return t.Render() + "\n"
}

// shown makes a text from Redis safe for a terminal: on one line, without control characters, and of bounded length.
// Most names pass as they are; others are spelt as Go does, in quotes.
func shown(text string, most int) string {
	plain := text != ""
	for _, r := range text {
		if !unicode.IsGraphic(r) || r == '"' || r == unicode.ReplacementChar {
			plain = false
			break
		}
	}
	if !plain || strings.TrimSpace(text) != text {
		text = strconv.QuoteToGraphic(text)
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

// count spells a number with separators between thousands.
func count(n int64) string { return humanize.Comma(n) }

// ago is a duration for people, in two units at most; "-" for none.
func ago(d time.Duration) string {
	switch {
	case d < 0:
		return "-"
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	const day = 24 * time.Hour
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// writeJSON prints a document.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// shownText is a whole text from Redis on one line: as it is where that is safe, else quoted.
func shownText(text string) string {
	for _, r := range text {
		if !unicode.IsGraphic(r) || r == unicode.ReplacementChar {
			return strconv.QuoteToGraphic(text)
		}
	}
	return text
}
