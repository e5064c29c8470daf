package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/cmd/loadtest/page"
)

func TestThePageOfARun(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(name, bytes.Repeat([]byte("old\n"), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), strings.Fields("-redis miniredis -duration 500ms -rate 200 -handler-time exponential:1ms -html "+name), &stdout, &stderr)
	text, err := os.ReadFile(name)
	if err != nil || code != exitBalanced {
		t.Fatalf("code %d, %v\n%s", code, err, &stderr)
	}
	for _, want := range []string{
		"Load test: legacy layout", "exponential:1ms", "200 a second", "missed sends", "all 100 published messages are accounted for",
		"<svg", "published", "acked", "99.9",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if bytes.Contains(text, []byte("old\n")) {
		t.Error("the file's old content is still there")
	}
	if !strings.HasSuffix(stdout.String(), "The page is in "+name+".\n") {
		t.Errorf("stdout does not say where the page is:\n%s", &stdout)
	}
}

// factsOf are a page's facts by name. No name may stand twice.
func factsOf(t *testing.T, p page.Page) map[string]string {
	t.Helper()
	facts := map[string]string{}
	for _, f := range p.Facts {
		if _, twice := facts[f[0]]; twice {
			t.Errorf("two facts %q", f[0])
		}
		facts[f[0]] = f[1]
	}
	return facts
}

func TestThePageHasTheFacts(t *testing.T) {
	t.Parallel()
	cpu, missed, late := 7.5, int64(3), 12.5
	messages := int64(5000)
	r := &report{
		Config: reportConfig{
			Layout: "zset", Messages: &messages, Rate: 100, Processes: 2, Concurrency: 8, Prefetch: 1024, Batch: 1000, Payload: 300, HandlerTime: "1ms",
			Fail: 0.05,
		},
		Published: 5000, Acked: 4000, AckedPerS: 1234.6, DeadLettered: 400, LeftReady: 300, LeftInFlight: 200, LeftDelayed: 98, Lost: 2,
		ClientCPU: &cpu, MissedSends: &missed, LateMSMax: &late, server: &server{source: sourceOwn, label: "private redis-server", version: "8"},
		Processes: []reportProcess{{2500, &cpu}, {1500, nil}}, tally: tally{Lost: 2},
	}
	got := factsOf(t, r.page())
	for name, want := range map[string]string{
		"server": "private redis-server 8", "layout": "zset", "load": "5,000 messages, 100 a second",
		"consumer": "2 processes, each with 8 workers, prefetch 1,024, batch 1,000", "acked": "4,000 (1,235 a second)", "dead-lettered": "400",
		"left": "598", "lost": "2", "missed sends": "3 sent over 10 ms late; the latest by 12.50 ms", "Redis CPU": "not known",
		"client CPU": "7.50 µs/msg", "process 1": "2,500 acked, 7.50 µs/msg of client CPU", "failing on purpose": "5 % of the handler runs",
		"verdict": "THE BOOKS DO NOT BALANCE: 2 published and in no place.",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}
