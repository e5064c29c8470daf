package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/babelpool/babelpool/internal/plots"
)

// results is what this command reads of a results file.
type results struct {
	Date    time.Time          `json:"date"`
	Machine map[string]string  `json:"machine"`
	Config  map[string]int     `json:"config"`
	Median  map[string]float64 `json:"median_msg_per_s"`
	Runs    map[string][]struct {
		PerSecond float64 `json:"msg_per_s"`
	} `json:"runs"`
}

// bar is one contender.
type bar struct {
	name              string
	median, low, high float64 // messages a second; low and high are of single runs
	ours              bool
}

var (
	// errNothing is returned when no contender is left to draw.
	errNothing = errors.New("no contender to draw")
	// errRate is returned when a contender handled nothing, which is a failed run and not a short bar.
	errRate = errors.New("the rate is not above 0")
)

func parse(text []byte) (*results, error) {
	r := new(results)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	return r, nil
}

// bars are the contenders, the fastest first.
func (r *results) bars(leaveOut []string) ([]bar, error) {
	var bars []bar
	for name, median := range r.Median {
		if slices.Contains(leaveOut, name) {
			continue
		}
		b := bar{name: r.title(name), median: median, low: median, high: median, ours: strings.HasPrefix(name, "babelpool")}
		for _, run := range r.Runs[name] {
			b.low, b.high = min(b.low, run.PerSecond), max(b.high, run.PerSecond)
		}
		if b.low <= 0 {
			return nil, fmt.Errorf("%s: %w", name, errRate)
		}
		bars = append(bars, b)
	}
	if len(bars) == 0 {
		return nil, errNothing
	}
	slices.SortFunc(bars, func(a, b bar) int {
		return cmp.Or(cmp.Compare(b.median, a.median), strings.Compare(a.name, b.name))
	})
	return bars, nil
}

// title is a contender's name for readers. One that is not known keeps its own.
func (r *results) title(name string) string {
	switch name {
	case "babelpool-legacy":
		return "babelpool, legacy layout"
	case "babelpool-zset":
		return "babelpool, zset layout"
	case "ceiling-legacy":
		return "our scripts alone, legacy"
	case "ceiling-zset":
		return "our scripts alone, zset"
	case "floor":
		return "plain list moves in bulk"
	case "plain":
		return "BLMOVE + LREM per message"
	case "watermill":
		return "watermill-redisstream"
	case "bullmq":
		return "BullMQ (Node.js)"
	}
	return name
}

// conditions says under what the rates were measured, as far as the file tells.
func (r *results) conditions() []string {
	var setting, machine []string
	add := func(to *[]string, format, key string) {
		if n, ok := r.Config[key]; ok {
			*to = append(*to, fmt.Sprintf(format, plots.Count(float64(n))))
		}
	}
	add(&setting, "%s-byte messages", "body_bytes")
	add(&setting, "concurrency %s", "concurrency")
	add(&setting, "watermill with %s subscribers", "watermill_subscribers")
	add(&setting, "babelpool's prefetch %s", "prefetch")
	add(&machine, "Median of %s runs, whiskers from lowest to highest", "runs")
	if cores, ok := r.Machine["cores"]; ok {
		noun := " cores "
		if cores == "1" {
			noun = " core "
		}
		machine = append(machine, strings.TrimSpace(cores+noun+r.Machine["cpu"]))
	}
	if redis, ok := version(r.Machine["redis"], "v="); ok {
		machine = append(machine, "Redis "+redis)
	}
	if version, ok := version(r.Machine["go"], "go"); ok {
		machine = append(machine, "Go "+version)
	}
	if version, ok := version(r.Machine["node"], "v"); ok {
		machine = append(machine, "Node.js "+version)
	}
	if !r.Date.IsZero() {
		machine = append(machine, r.Date.Format("2006-01-02"))
	}
	var lines []string
	for _, line := range [][]string{setting, machine} {
		if len(line) > 0 {
			lines = append(lines, strings.Join(line, " · "))
		}
	}
	return lines
}

// version finds the word that starts with a prefix and a digit, and cuts the prefix off.
func version(text, prefix string) (string, bool) {
	for word := range strings.FieldsSeq(text) {
		if rest, ok := strings.CutPrefix(word, prefix); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return rest, true
		}
	}
	return "", false
}
