// Command growth makes tables of benchmarks that ran several times. It reads the output of go test on its standard
// input. Benchmarks whose names differ only in a number at the end form a table: the median of each metric, and in
// brackets its ratio to that of the smallest number.
package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	for _, t := range read(string(text)) {
		if err := t.write(out); err != nil {
			return err
		}
	}
	return nil
}

// table is a group of benchmarks, in the order in which they and their metrics first came.
type table struct {
	name  string
	units []string
	rows  []*row
}

// row is one benchmark.
type row struct {
	label   string
	number  float64              // of the label; NaN for none
	figures map[string][]float64 // by unit, one for each run
}

var (
	line = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`) // without the number of processors
	last = regexp.MustCompile(`^(.+)/(\d+)$`)
)

// read collects the lines of benchmarks and passes over all others.
func read(text string) []*table {
	var tables []*table
	for l := range strings.Lines(text) {
		match := line.FindStringSubmatch(strings.TrimSpace(l))
		if match == nil {
			continue
		}
		name, label, number := match[1], "", math.NaN()
		if parts := last.FindStringSubmatch(name); parts != nil {
			name, label = parts[1], parts[2]
			number, _ = strconv.ParseFloat(label, 64) // digits
		}
		t := find(&tables, func(t *table) bool { return t.name == name }, &table{name: name})
		r := find(&t.rows, func(r *row) bool { return r.label == label },
			&row{label: label, number: number, figures: map[string][]float64{}})
		fields := strings.Fields(match[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				break // a log line that got between
			}
			unit := fields[i+1]
			if !slices.Contains(t.units, unit) {
				t.units = append(t.units, unit)
			}
			r.figures[unit] = append(r.figures[unit], value)
		}
	}
	return tables
}

// find returns the element that fits, or appends the new one.
func find[T any](all *[]T, fits func(T) bool, add T) T {
	if i := slices.IndexFunc(*all, fits); i >= 0 {
		return (*all)[i]
	}
	*all = append(*all, add)
	return add
}

func (t *table) write(out io.Writer) error {
	slices.SortStableFunc(t.rows, func(x, y *row) int { return cmp.Compare(x.number, y.number) })
	var text strings.Builder
	fmt.Fprintf(&text, "\n%s\n\t%s\t\n", t.name, strings.Join(t.units, "\t"))
	for i, r := range t.rows {
		text.WriteString(r.label + "\t")
		for _, unit := range t.units {
			value, base := median(r.figures[unit]), median(t.rows[0].figures[unit])
			text.WriteString(number(value))
			if i > 0 && base > 0 && !math.IsNaN(value) {
				fmt.Fprintf(&text, " (%.2f)", value/base)
			}
			text.WriteString("\t")
		}
		text.WriteString("\n")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	return w.Flush()
}

// number writes four digits, or all those before the point.
func number(value float64) string {
	switch size := math.Abs(value); {
	case math.IsNaN(value):
		return "-"
	case size >= 1000:
		return strconv.FormatFloat(value, 'f', 0, 64)
	default:
		return strconv.FormatFloat(value, 'g', 4, 64)
	}
}

// median is the middle, or the mean of the two middle ones; NaN for none.
func median(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
