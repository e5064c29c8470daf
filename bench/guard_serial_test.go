//go:build serial && !race

package bench

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/yardstick"
	"github.com/babelpool/babelpool/pool"
)

const (
	guardMessages = 50_000
	guardRuns     = 3
)

// costOf consumes n messages with a pool, and with the scripts alone, several times in turn. Medians, as a
// neighbour on the machine can spoil one run.
func costOf(t *testing.T, layout flow.Layout, n int, cfg pool.Config) cost {
	t.Helper()
	r := newRig(t, false)
	store, keys := r.store(t, layout)
	var commands, allocs, pools, ceilings []float64
	for run := range guardRuns + 1 {
		r.fill(t, keys.Ready, n)
		var before, after runtime.MemStats
		commandsBefore, cpuBefore := r.commands(t), r.cpu(t)
		runtime.ReadMemStats(&before)
		r.consume(t, cfg, n)
		runtime.ReadMemStats(&after)
		cpu, ran := r.cpu(t)-cpuBefore, r.commands(t)-commandsBefore

		r.fill(t, keys.Ready, guardMessages)
		cpuBefore = r.cpu(t)
		must(t, yardstick.Ceiling(context.Background(), store, guardMessages))
		ceiling := r.cpu(t) - cpuBefore
		if run == 0 {
			continue // the server learns the scripts, and takes its memory
		}
		commands = append(commands, float64(ran)/float64(n))
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/float64(n))
		pools = append(pools, cpu.Seconds()/float64(n))
		ceilings = append(ceilings, ceiling.Seconds()/guardMessages)
	}
	c := cost{median(commands), median(allocs), median(pools) / median(ceilings)}
	t.Logf("%.4f commands and %.2f allocations for each message; %.2f times the CPU of the scripts alone, %.2f µs",
		c.commands, c.allocs, c.ceilings, median(ceilings)*1e6)
	return c
}

// commands is how many commands the server has run, those that scripts called included, but for the INFO that
// asks.
func (r *rig) commands(t *testing.T) int {
	t.Helper()
	total := 0
	for name, line := range r.info(t, "commandstats") {
		if name == "cmdstat_info" {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(line, "calls="), ",")
		n, err := strconv.Atoi(calls)
		must(t, err)
		total += n
	}
	return total
}

// TestSerialCostGuard fails when a change makes messages markedly more expensive.
func TestSerialCostGuard(t *testing.T) {
	for _, layout := range both {
		t.Run(layout.String(), func(t *testing.T) {
			c := costOf(t, layout, guardMessages, oneQueue(layout, concurrency, growthPrefetch))
			if err := c.check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSerialCostGuardSeesLostBatches plants a regression: with a batch size of one, every message costs a reserve and
// a settle of its own. A guard that lets that pass guards nothing.
func TestSerialCostGuardSeesLostBatches(t *testing.T) {
	for _, layout := range both {
		t.Run(layout.String(), func(t *testing.T) {
			const n = 3000
			cfg := oneQueue(layout, concurrency, growthPrefetch)
			cfg.Batch = 1
			err := costOf(t, layout, n, cfg).check()
			for _, want := range []error{errCommands, errAllocs, errCPU} {
				if !errors.Is(err, want) {
					t.Errorf("batches of one went unnoticed: no %q in %v", want, err)
				}
			}
		})
	}
}
