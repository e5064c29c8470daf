package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// result is one run.
type result struct {
	Messages     int     `json:"messages"`
	Seconds      float64 `json:"seconds"`
	PerSecond    float64 `json:"msg_per_s"`
	RedisMicros  float64 `json:"redis_cpu_us_per_msg"`
	ClientMicros float64 `json:"client_cpu_us_per_msg"` // of this process; a contender in Node has its own
}

func newResult(n int, took, redisCPU, clientCPU time.Duration) result {
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(n) }
	return result{n, took.Seconds(), float64(n) / took.Seconds(), per(redisCPU), per(clientCPU)}
}

// report is what is printed and written.
type report struct {
	Date     string              `json:"date"`
	Revision string              `json:"revision,omitempty"`
	Machine  map[string]string   `json:"machine"`
	Config   map[string]int      `json:"config"`
	Median   map[string]float64  `json:"median_msg_per_s"`
	Runs     map[string][]result `json:"runs"`
	order    []string
}

func newReport(messages, runs int, revision string) *report {
	return &report{
		Date: time.Now().UTC().Format(time.RFC3339), Revision: revision,
		Machine: map[string]string{
			"cpu": cpuModel(), "cores": fmt.Sprint(runtime.NumCPU()), "go": runtime.Version(),
			"redis": firstLine("redis-server", "--version"), "node": firstLine("node", "--version"),
		},
		Config: map[string]int{
			"messages": messages, "runs": runs, "body_bytes": bodyBytes, "concurrency": concurrency, "prefetch": prefetch,
			"watermill_subscribers": subscribers,
		},
		Median: map[string]float64{}, Runs: map[string][]result{},
	}
}

func (r *report) add(name string, one result) {
	if _, ok := r.Runs[name]; !ok {
		r.order = append(r.order, name)
	}
	r.Runs[name] = append(r.Runs[name], one)
	rates := make([]float64, 0, len(r.Runs[name]))
	for _, run := range r.Runs[name] {
		rates = append(rates, run.PerSecond)
	}
	r.Median[name] = median(rates)
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// table is the medians and how often babelpool handles a message while a contender handles one.
func (r *report) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %-18s | %9s | %17s | %14s | %12s |\n", "contender", "msg/s", "lowest–highest", "legacy ÷ this", "zset ÷ this")
	b.WriteString("|---|---:|---:|---:|---:|\n")
	for _, name := range r.order {
		low, high := r.Runs[name][0].PerSecond, r.Runs[name][0].PerSecond
		for _, run := range r.Runs[name] {
			low, high = min(low, run.PerSecond), max(high, run.PerSecond)
		}
		fmt.Fprintf(&b, "| %-18s | %9.0f | %8.0f–%8.0f | %14s | %12s |\n", name, r.Median[name], low, high,
			r.ratio("babelpool-legacy", name), r.ratio("babelpool-zset", name))
	}
	return b.String()
}

func (r *report) ratio(ours, theirs string) string {
	if r.Median[ours] == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", r.Median[ours]/r.Median[theirs])
}

func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func firstLine(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "none"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
