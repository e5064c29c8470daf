package main

import (
	"flag"
	"io"
	"slices"
	"strings"
)

// flagOrder is the order of the help. It holds every flag.
var flagOrder = []string{
	"redis", "layout", "messages", "duration", "rate", "prefill", "payload", "processes", "concurrency", "prefetch",
	"batch", "handler-time", "fail", "retry-after", "backoff", "legacy-retry", "max-attempts", "sweep", "runs", "chaos", "seed", "json",
	"html",
}

const usageWidth = 100

const examples = `examples:
  loadtest -prefill -messages 200000                       how fast a backlog is worked off
  loadtest -rate 5000 -duration 10s -html load.html        latency under a steady load
  loadtest -processes 4 -handler-time exponential:5ms      four consumers that compete
  loadtest -sweep -concurrency 16,64,256 -prefetch 256,1024 -messages 100000 -runs 3
                                                           which setting is the fastest
  loadtest -chaos -duration 30s                            what survives faults: everything
`

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
	say(w, "\n%s", examples)
	say(w, "\nThe exit code is 0 when the books balance, 1 when they do not or the run failed, 2 for bad flags.\n"+
		"An interrupt drains the pools and accounts for what is left; a second one ends at once.\n")
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
