package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/yardstick"
	"github.com/babelpool/babelpool/pool"
)

// What a message may cost. None of these depends on how fast the machine is: two are counts, the third compares
// two consumers on one server. They leave about a third of room above what was measured when they were set.
const (
	mostCommands = 0.11 // of the server, those that scripts call included
	mostAllocs   = 12
	mostCeilings = 1.35 // times the server's CPU for the scripts alone
)

var (
	errCommands = errors.New("bench: too many commands for each message")
	errAllocs   = errors.New("bench: too many allocations for each message")
	errCPU      = errors.New("bench: too much CPU of the server for each message")
)

// cost is what one message took.
type cost struct {
	commands float64 // run by the server
	allocs   float64 // in this process
	ceilings float64 // CPU of the server, in units of what the scripts alone take
}

// check joins an error for each bound that is passed.
func (c cost) check() error {
	var problems []error
	for _, one := range []struct {
		err         error
		value, most float64
	}{{errCommands, c.commands, mostCommands}, {errAllocs, c.allocs, mostAllocs}, {errCPU, c.ceilings, mostCeilings}} {
		if !(one.value <= one.most) { // so that no number does not pass
			problems = append(problems, fmt.Errorf("%w: %.3f, the bound is %.3f", one.err, one.value, one.most))
		}
	}
	return errors.Join(problems...)
}

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

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
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

// serial skips a test of cost unless it runs alone and undisturbed.
func serial(t *testing.T) {
	t.Helper()
	if os.Getenv("BQ_SERIAL") != "1" {
		t.Skip("measures cost: runs in the serial pass, BQ_SERIAL=1")
	}
	if raceEnabled {
		t.Skip("measures cost: the race detector would be measured too")
	}
}

// TestSerialCostGuard fails when a change makes messages markedly more expensive.
func TestSerialCostGuard(t *testing.T) {
	serial(t)
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
	serial(t)
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

func TestCostIsCheckedAgainstEachBound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cost cost
		want error
	}{
		"at the bounds": {cost{mostCommands, mostAllocs, mostCeilings}, nil},
		"commands":      {cost{mostCommands * 1.01, mostAllocs, mostCeilings}, errCommands},
		"allocations":   {cost{mostCommands, mostAllocs * 1.01, mostCeilings}, errAllocs},
		"CPU":           {cost{mostCommands, mostAllocs, mostCeilings * 1.01}, errCPU},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tc.cost.check()
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			for _, other := range []error{errCommands, errAllocs, errCPU} {
				if !errors.Is(tc.want, other) && errors.Is(err, other) {
					t.Errorf("got %v as well", other)
				}
			}
		})
	}
}
