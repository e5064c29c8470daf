package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// writeTable prints the report for people.
func (r *report) writeTable(w io.Writer) {
	c := &r.Config
	say(w, "\n%s: %s layout on %s\n", r.queue, c.Layout, r.server)
	say(w, "%s, envelopes of %s bytes\n\n", c.shape(), count(int64(c.Payload)))

	row := func(name string, n int64, remark string) {
		say(w, "%s\n", strings.TrimRight(fmt.Sprintf("  %-16s %13s   %s", name, count(n), remark), " "))
	}
	row("published", r.Published, rate(r.PublishPerS, r.publishingTime))
	if r.MissedSends != nil {
		row("missed sends", *r.MissedSends, r.lateRemark())
	}
	row("acked", r.Acked, rate(r.AckedPerS, r.consumingTime))
	row("dead-lettered", r.DeadLettered, "")
	row("left ready", r.LeftReady, "")
	row("left in flight", r.LeftInFlight, "")
	row("left delayed", r.LeftDelayed, "")
	row("lost", r.Lost, r.lostRemark())
	row("redelivered", r.Redelivered, "handler starts beyond a message's first")
	row("duplicated", r.Duplicated, "successful runs beyond a message's first")
	say(w, "\n")

	say(w, "  %-16s %13s\n", "Redis CPU", perMessageText(r.RedisCPU))
	say(w, "  %-16s %13s\n", "client CPU", perMessageText(r.ClientCPU))
	if l := r.LatencyMS; l != nil {
		say(w, "  %-16s %s\n", "latency", "from the intended publish to the handler's first start")
		for _, p := range []struct {
			name string
			ms   float64
		}{{"p50", l.P50}, {"p90", l.P90}, {"p99", l.P99}, {"p99.9", l.P999}, {"max", l.Max}} {
			say(w, "    %-14s %10.2f ms\n", p.name, p.ms)
		}
	}
	r.writeProcesses(w)
	r.writeFaults(w)
	say(w, "\n%s\n", r.verdict())
}

// shape is who consumes.
func (c *reportConfig) shape() string {
	text := fmt.Sprintf("%d workers, prefetch %s", c.Concurrency, count(int64(c.Prefetch)))
	if c.Batch > 0 {
		text += ", batch " + count(int64(c.Batch))
	}
	if c.Processes > 1 {
		text = fmt.Sprintf("%d processes, each with %s", c.Processes, text)
	}
	return text
}

func (r *report) writeProcesses(w io.Writer) {
	if len(r.Processes) == 0 {
		return
	}
	say(w, "\n  %-16s %13s   %s\n", "process", "acked", "client CPU")
	for i, p := range r.Processes {
		say(w, "  %-16d %13s   %s\n", i+1, count(p.Acked), perMessageText(p.ClientCPU))
	}
}

func (r *report) lateRemark() string {
	return fmt.Sprintf("sent over %d ms late; the latest by %.2f ms", missedAfter.Milliseconds(), *r.LateMSMax)
}

// verdict says whether the books balance, and every reason why they do not.
func (r *report) verdict() string {
	if r.Reconciled {
		return fmt.Sprintf("The books balance: all %s published messages are accounted for.", count(r.Published))
	}
	var reasons []string
	add := func(n int64, format string) {
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf(format, count(n)))
		}
	}
	t := &r.tally
	add(t.Lost, "%s published and in no place")
	add(t.Forked, "%s in the keys more than once")
	add(t.Denied, "%s there although their publish failed for certain")
	add(t.Strangers, "%s values in the keys that this run did not publish")
	add(t.Evidence.Stolen, "%s removed by a settlement whose lease was gone")
	add(t.Evidence.Repeated, "%s doubled by a settlement whose lease was gone")
	reasons = append(reasons, r.problems...)
	return "THE BOOKS DO NOT BALANCE: " + strings.Join(reasons, "; ") + "."
}

func (r *report) lostRemark() string {
	if r.Lost == 0 {
		return ""
	}
	var seqs []string
	for _, seq := range r.tally.LostSeqs {
		seqs = append(seqs, strconv.FormatInt(seq, 10))
	}
	if r.Lost > int64(len(seqs)) {
		seqs = append(seqs, "…")
	}
	return "sequence numbers " + strings.Join(seqs, ", ")
}

func rate(perSecond float64, d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return fmt.Sprintf("%9s msg/s in %s s", whole(perSecond), strconv.FormatFloat(d.Seconds(), 'f', 2, 64))
}

func perMessageText(us *float64) string {
	if us == nil {
		return "not known"
	}
	return strconv.FormatFloat(*us, 'f', 2, 64) + " µs/msg"
}

// count is a number with its thousands set apart.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// whole is a number without its fraction.
func whole(v float64) string { return count(int64(math.Round(v))) }

// clockTime is a rounded-up duration as minutes and seconds.
func clockTime(d time.Duration) string {
	const longest = 100 * time.Hour
	if d >= longest {
		return "over 100 h"
	}
	seconds := int64((d + time.Second - 1) / time.Second)
	if seconds < 3600 {
		return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}
