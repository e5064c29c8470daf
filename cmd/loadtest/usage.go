package main

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"time"
)

// flagOrder is the order of the help. It holds every flag.
var flagOrder = []string{
	"redis", "layout", "messages", "duration", "rate", "prefill", "payload", "concurrency", "prefetch", "handler-time",
	"fail", "retry-after", "backoff", "legacy-retry", "max-attempts", "json",
}

const usageWidth = 100

// writeUsage prints the help.
func writeUsage(w io.Writer) {
	fs := newFlagSet(&config{}, &rawFlags{})
	say(w, "loadtest publishes messages, consumes them with a pool, and proves the result by keeping books.\n\n"+
		"usage: loadtest [flags]\n\n")
	heads, widest := make([]string, len(flagOrder)), 0
	for i, name := range flagOrder {
		value, _ := flag.UnquoteUsage(fs.Lookup(name))
		heads[i] = strings.TrimSpace("-" + name + " " + value)
		widest = max(widest, len(heads[i]))
	}
	for i, name := range flagOrder {
		f := fs.Lookup(name)
		value, text := flag.UnquoteUsage(f)
		text = strings.TrimPrefix(text, value) // the usage of a flag begins with the name of its value
		if !slices.Contains([]string{"", "0", "0s", "false"}, f.DefValue) {
			text += " (default " + f.DefValue + ")"
		}
		for n, line := range wrap(text, usageWidth-widest-4) {
			head := heads[i]
			if n > 0 {
				head = ""
			}
			say(w, "  %-*s  %s\n", widest, head, line)
		}
	}
	say(w, "\nThe exit code is 0 when the books balance, 1 when they do not or the run failed, 2 for bad flags.\n"+
		"An interrupt drains the pool and accounts for what is left; a second one ends at once.\n")
}

// wrap breaks a text at spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// durationValue is a flag.Value whose error says what a duration looks like.
type durationValue time.Duration

// String is the duration in Go's notation.
func (d *durationValue) String() string { return time.Duration(*d).String() }

// Set parses Go's notation.
func (d *durationValue) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("a duration has a unit, such as 500ms, 2s or 1m")
	}
	*d = durationValue(v)
	return nil
}

func duration(fs *flag.FlagSet, d *time.Duration, name string, fallback time.Duration, usage string) {
	*d = fallback
	fs.Var((*durationValue)(d), name, usage)
}
