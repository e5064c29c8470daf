package plots

import (
	"math"
	"strconv"
	"strings"
)

// missing stands for a value that is no number.
const missing = "–"

// Count is a rounded number with its thousands set apart: 181,000. What is no finite number is a dash.
func Count(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return missing
	}
	digits := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if v < 0 && digits != "0" {
		return "-" + digits
	}
	return digits
}

// Short is a number in at most three significant digits: 950, 9.87k, 181k, 1.2M. What is no finite number is a dash.
func Short(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return missing
	}
	size := math.Abs(v)
	for _, unit := range []struct {
		from float64
		sign string
	}{{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}} {
		if size/unit.from < 999.5 {
			return Significant(v/unit.from) + unit.sign
		}
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Significant is a number in three significant digits, trailing zeros removed, or a whole number with its thousands
// set apart when that is longer: 0.123, 12.3, 1,234. What is no finite number is a dash.
func Significant(v float64) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0) || size >= 99.95:
		return Count(v)
	case size < 1e-6:
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(size))))
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
