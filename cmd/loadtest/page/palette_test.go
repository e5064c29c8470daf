package page

import (
	"image/color"
	"math"
	"strings"
	"testing"
)

func TestColoursAreDistinctAndDeclaredInBothSchemes(t *testing.T) {
	t.Parallel()
	light, dark, _ := strings.Cut(schemes(), "@media")
	seen := make(map[color.NRGBA]string)
	for _, c := range tints() {
		if other, ok := seen[c.light]; ok {
			t.Errorf("%s and %s are the same, and one would become the other", c.name, other)
		}
		seen[c.light] = c.name
		if !strings.Contains(light, "--"+c.name+":"+hex(c.light)) || !strings.Contains(dark, "--"+c.name+":"+hex(c.dark)) {
			t.Errorf("%s is not declared", c.name)
		}
		if got := themed(hex(c.light)); got != "var(--"+c.name+")" {
			t.Errorf("%s becomes %s", c.name, got)
		}
	}
}

// The limits are those of WCAG 2.1: 4.5 for texts, 3 for lines.
func TestColoursAreLegibleInBothSchemes(t *testing.T) {
	t.Parallel()
	check := func(what string, a, b tint, least float64) {
		if got := contrast(a.light, b.light); got < least {
			t.Errorf("light %s: contrast %.2f", what, got)
		}
		if got := contrast(a.dark, b.dark); got < least {
			t.Errorf("dark %s: contrast %.2f", what, got)
		}
	}
	check("text", ink, paper, 4.5)
	check("muted text", muted, paper, 4.5)
	for _, l := range lines {
		check(l.name, l, paper, 3)
	}
	for i, step := range heat {
		text := paper
		if i < inkSteps {
			text = ink
		}
		check("text on "+step.name, text, step, 4.5)
	}
}

func contrast(a, b color.NRGBA) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(c color.NRGBA) float64 {
	part := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.03928 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
}
