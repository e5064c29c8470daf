package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

const (
	sweepBar    = 16 // columns of the longest bar
	steadyAfter = time.Second
)

// writeTable prints the comparison for people, in the order of the flags.
func (r *sweepReport) writeTable(w io.Writer) {
	c := &r.Config
	say(w, "\nsweep: %s layout on %s\n", c.Layout, r.server)
	say(w, "%s\n\n", r.method())
	say(w, "  %11s  %9s  %7s  %11s  %9s  %10s  %6s\n", "concurrency", "prefetch", "batch", "acked msg/s", "Redis CPU", "client CPU", "lost")
	most := 0.0
	runs := int64(0)
	for _, cell := range r.Sweep {
		most = max(most, cell.AckedPerS)
		runs += int64(len(cell.runs))
	}
	for i, cell := range r.Sweep {
		if i > 0 && cell.Concurrency != r.Sweep[i-1].Concurrency && len(r.Config.Prefetch)*len(r.Config.Batch) > 1 {
			say(w, "\n")
		}
		mark := ""
		if cell.Best {
			mark = " best"
		}
		bar := strings.Repeat("=", int(sweepBar*cell.AckedPerS/max(most, 1)+0.5))
		say(w, "  %11s  %9s  %7s  %11s  %9s  %10s  %6s  %s%s\n", count(int64(cell.Concurrency)), count(int64(cell.Prefetch)),
			batchText(cell.Batch), whole(cell.AckedPerS), microsText(cell.RedisCPU), microsText(cell.ClientCPU), count(cell.Lost), bar, mark)
	}
	if len(r.Skipped) > 0 {
		say(w, "\n  skipped, because some workers would never have work: %s\n", joined(r.Skipped))
	}
	say(w, "\n  CPU in microseconds per message.\n")
	if shortest := r.shortest(); shortest < steadyAfter {
		say(w, "  The shortest run took %.2f s; with more -messages the figures are steadier.\n", shortest.Seconds())
	}
	if bad := r.firstUnbalanced(); bad != nil {
		c := combination{holding{bad.Config.Concurrency, bad.Config.Prefetch}, bad.Config.Batch}
		say(w, "\nAt %s: %s\n", c, bad.verdict())
		return
	}
	say(w, "\nThe books of all %s runs balance.\n", count(runs))
}

// shortest is how long the consumption of the shortest run took.
func (r *sweepReport) shortest() time.Duration {
	shortest := time.Duration(math.MaxInt64)
	for _, c := range r.Sweep {
		for _, run := range c.runs {
			shortest = min(shortest, run.consumingTime)
		}
	}
	return shortest
}

// method says how a line of the table came about.
func (r *sweepReport) method() string {
	c := &r.Config
	text := fmt.Sprintf("%s messages of %s bytes, prefilled", count(*c.Messages), count(int64(c.Payload)))
	if c.Processes > 1 {
		text += fmt.Sprintf("; %d processes", c.Processes)
	}
	if c.Runs > 1 {
		text += fmt.Sprintf("; medians of %d runs", c.Runs)
	}
	return text
}

func microsText(us *float64) string {
	if us == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *us)
}
