package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/testredis"
)

// runSweepCommand runs a sweep and decodes its report strictly.
func runSweepCommand(ctx context.Context, t *testing.T, flags string) (o outcome, r sweepReport) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.code = run(ctx, strings.Fields(flags+" -sweep -json -"), &stdout, &stderr)
	o.stdout, o.stderr = stdout.String(), stderr.String()
	dec := json.NewDecoder(&stdout)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil && o.stdout != "" {
		t.Fatalf("stdout is no report: %v\n%s", err, o.stdout)
	}
	return o, r
}

func TestSweep(t *testing.T) {
	t.Parallel()
	alone(t, func(t *testing.T, b backend) {
		html := filepath.Join(t.TempDir(), "sweep.html")
		o, r := runSweepCommand(t.Context(), t, "-messages 300 -layout zset -concurrency 4,16 -prefetch 8,64 -runs 2 -html "+html+
			" -redis "+b.url)
		if o.code != exitBalanced {
			t.Fatalf("code %d\n%s", o.code, o.stderr)
		}
		var settings []combination
		best, most := 0, 0.0
		for _, c := range r.Sweep {
			settings = append(settings, c.combination)
			if c.AckedPerS <= 0 || c.ClientCPU == nil || c.Lost != 0 {
				t.Errorf("%s\n%s", c, o.stdout)
			}
			most = max(most, c.AckedPerS)
			if c.Best {
				best++
			}
		}
		for _, c := range r.Sweep {
			if c.Best && c.AckedPerS != most {
				t.Errorf("the best, %.0f/s, is not the fastest, %.0f/s", c.AckedPerS, most)
			}
		}
		if diff := cmp.Diff([]combination{{holding{4, 8}, 0}, {holding{4, 64}, 0}, {holding{16, 64}, 0}}, settings, cmp.AllowUnexported(combination{})); diff != "" || best != 1 {
			t.Errorf("%d best; settings (-want +got)\n%s", best, diff)
		}
		if diff := cmp.Diff([]holding{{16, 8}}, r.Skipped); diff != "" {
			t.Errorf("skipped (-want +got)\n%s", diff)
		}
		c := r.Config
		if *c.Messages != 300 || c.Runs != 2 || !c.Prefill || !cmp.Equal(c.Concurrency, []int{4, 16}) || !cmp.Equal(c.Prefetch, []int{8, 64}) ||
			!cmp.Equal(c.Batch, []int{0}) {
			t.Errorf("config\n%s", o.stdout)
		}
		for _, text := range []string{
			"concurrency 16 with prefetch 8", " best\n", "medians of 2 runs", "The books of all 6 runs balance.", html,
		} {
			if !strings.Contains(o.stderr, text) {
				t.Errorf("the table does not say %q:\n%s", text, o.stderr)
			}
		}
		page, err := os.ReadFile(html)
		if err != nil || !bytes.Contains(page, []byte("<svg")) || !bytes.Contains(page, []byte("concurrency 16 with prefetch 8")) {
			t.Errorf("%v, page of %d bytes", err, len(page))
		}
		if keys := b.client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
			t.Errorf("keys after the sweep: %q", keys)
		}
	})
}

func TestSweepNamesAreStable(t *testing.T) {
	t.Parallel()
	o, _ := runSweepCommand(t.Context(), t, "-messages 10 -redis miniredis")
	var r struct {
		Sweep []map[string]any
	}
	var top map[string]any
	if err := json.Unmarshal([]byte(o.stdout), &top); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || len(r.Sweep) != 1 {
		t.Fatalf("%v\n%s", err, o.stdout)
	}
	names := func(m map[string]any) (names []string) {
		for _, n := range []string{"config", "redis", "sweep", "skipped", "concurrency", "prefetch", "batch", "acked_per_s",
			"redis_cpu_us_per_msg", "client_cpu_us_per_msg", "lost", "best"} {
			if _, ok := m[n]; ok {
				names = append(names, n)
				delete(m, n)
			}
		}
		if len(m) > 0 {
			t.Errorf("names nobody knows: %v", m)
		}
		return names
	}
	if got := strings.Join(names(top), " "); got != "config redis sweep skipped" {
		t.Errorf("names %s", got)
	}
	got := strings.Join(names(r.Sweep[0]), " ")
	if got != "concurrency prefetch batch acked_per_s redis_cpu_us_per_msg client_cpu_us_per_msg lost best" {
		t.Errorf("names %s", got)
	}
}

func TestAnInterruptedSweepReportsWhatItHas(t *testing.T) {
	t.Parallel()
	alone(t, func(t *testing.T, b backend) {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		var o outcome
		var r sweepReport
		var g errgroup.Group
		g.Go(func() error {
			o, r = runSweepCommand(ctx, t, "-messages 200 -concurrency 200,1 -handler-time 500ms -redis "+b.url)
			return nil
		})
		// The first run takes half a second, the second much longer than this test.
		runs := map[string]bool{}
		testredis.Eventually(t, 20*time.Second, func() bool {
			for _, key := range b.client.Keys(t.Context(), "*"+queuePrefix+"*").Val() {
				_, name, _ := strings.Cut(key, queuePrefix)
				runs[name[:len("0123abcd")]] = true
			}
			return len(runs) == 2
		}, "no second run")
		interrupt()
		_ = g.Wait() // never fails
		if o.code != exitBalanced || len(r.Sweep) != 1 || r.Sweep[0].Concurrency != 200 || !r.Sweep[0].Best {
			t.Errorf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
		}
		if !strings.Contains(o.stderr, "the sweep ends after 1 of 2 runs") {
			t.Errorf("stderr does not tell of the interrupt:\n%s", o.stderr)
		}
		if keys := b.client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
			t.Errorf("keys after the sweep: %q", keys)
		}
	})
}

func TestSweepWithoutAnyRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{"-sweep", "-redis", "miniredis"}, &stdout, &stderr); code != exitFailed || stderr.Len() == 0 {
		t.Errorf("code %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
}

// cellOf is a cell of runs with these rates.
func cellOf(c combination, rates ...float64) sweepCell {
	cell := sweepCell{combination: c}
	for _, rate := range rates {
		cell.runs = append(cell.runs, &report{AckedPerS: rate, RedisCPU: &rate, Reconciled: true})
	}
	return cell
}

func TestMediansAreCompared(t *testing.T) {
	t.Parallel()
	cfg := config{sweep: &sweepPlan{}}
	r := newSweepReport(cfg, &server{}, []sweepCell{
		cellOf(combination{holding{1, 4}, 0}, 10, 900, 20), cellOf(combination{holding{2, 8}, 0}, 30, 50),
		cellOf(combination{holding{2, 8}, 1}, 39),
	})
	for i, want := range []sweepCell{{AckedPerS: 20}, {AckedPerS: 40, Best: true}, {AckedPerS: 39}} {
		if got := r.Sweep[i]; got.AckedPerS != want.AckedPerS || *got.RedisCPU != want.AckedPerS || got.ClientCPU != nil || got.Best != want.Best {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestALostMessageIsFoundInASweep(t *testing.T) {
	t.Parallel()
	cells := []sweepCell{cellOf(combination{holding{1, 4}, 0}, 10, 10), cellOf(combination{holding{2, 8}, 16}, 30, 50)}
	bad := cells[1].runs[1]
	bad.Reconciled, bad.Lost, bad.tally.Lost = false, 3, 3
	bad.Config = reportConfig{Concurrency: 2, Prefetch: 8, Batch: 16}
	n := int64(1)
	r := newSweepReport(config{messages: n, sweep: &sweepPlan{}}, &server{}, cells)
	var table strings.Builder
	r.writeTable(&table)
	if r.Sweep[1].Lost != 3 || r.firstUnbalanced() != bad || strings.Contains(table.String(), "runs balance") ||
		!strings.Contains(table.String(), "At concurrency 2 with prefetch 8 and batch 16: THE BOOKS DO NOT BALANCE: 3 published and in no place.") {
		t.Errorf("lost %d\n%s", r.Sweep[1].Lost, &table)
	}
}
