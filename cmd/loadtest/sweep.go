package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// sweepReport is what a sweep found, as -json writes it. The names are stable.
type sweepReport struct {
	Config  sweepConfig `json:"config"`
	Redis   reportRedis `json:"redis"`
	Sweep   []sweepCell `json:"sweep"`
	Skipped []holding   `json:"skipped"` // impossible: fewer messages held than workers
	server  *server
}

// sweepConfig is the config of a sweep, where what it varies are lists.
type sweepConfig struct {
	reportConfig
	Concurrency []int `json:"concurrency"`
	Prefetch    []int `json:"prefetch"` // 0 = the default
	Batch       []int `json:"batch"`    // 0 = the pool's default
	Runs        int   `json:"runs"`
}

// sweepCell is what was measured of a combination: medians of its runs, but for the lost, which are added up.
type sweepCell struct {
	combination
	AckedPerS float64  `json:"acked_per_s"`
	RedisCPU  *float64 `json:"redis_cpu_us_per_msg"`
	ClientCPU *float64 `json:"client_cpu_us_per_msg"`
	Lost      int64    `json:"lost"`
	Best      bool     `json:"best"` // the most acked per second

	runs []*report
}

// runSweep runs every combination on one server and writes the comparison of those that were run.
func runSweep(ctx context.Context, cfg config, srv *server, show *progress, out outputs, table io.Writer) (code int, err error) {
	cells, sweepErr := sweep(ctx, cfg, srv, show)
	if len(cells) == 0 {
		return exitFailed, errors.Join(sweepErr, ctx.Err())
	}
	rep := newSweepReport(cfg, srv, cells)
	rep.writeTable(table)
	err = errors.Join(sweepErr, out.write(rep, rep.page(), table))
	if err != nil || rep.firstUnbalanced() != nil {
		return exitFailed, err
	}
	return exitBalanced, nil
}

// sweep measures every combination. All have their first run before any has its second, so that what changes
// with time changes all. An interrupted run is no measurement; neither is one that fails, which ends the sweep.
func sweep(ctx context.Context, cfg config, srv *server, show *progress) ([]sweepCell, error) {
	plan := cfg.sweep
	if len(plan.skipped) > 0 {
		show.notef("skipped, because some workers would never have work: %s", joined(plan.skipped))
	}
	cells := make([]sweepCell, len(plan.combinations))
	measured := func() []sweepCell {
		return slices.DeleteFunc(cells, func(c sweepCell) bool { return len(c.runs) == 0 })
	}
	defer show.title("")
	for round := range plan.runs {
		for i, c := range plan.combinations {
			show.title(fmt.Sprintf("%*d/%d", digits(len(cells)*plan.runs), round*len(cells)+i+1, len(cells)*plan.runs))
			cells[i].combination = c
			one := cfg
			one.concurrency, one.prefetch, one.batch = c.Concurrency, c.Prefetch, c.Batch
			rep, err := runTrial(ctx, one, srv, show)
			if err != nil {
				return measured(), fmt.Errorf("%s: %w", c, err)
			}
			if ctx.Err() != nil {
				show.notef("the sweep ends after %d of %d runs", round*len(cells)+i, len(cells)*plan.runs)
				return measured(), nil
			}
			cells[i].runs = append(cells[i].runs, rep)
		}
	}
	return measured(), nil
}

// digits is how many digits a number has.
func digits(n int) int { return len(fmt.Sprint(n)) }

// newSweepReport compares cells, at least one, that each have a run.
func newSweepReport(cfg config, srv *server, cells []sweepCell) *sweepReport {
	r := &sweepReport{
		Config: sweepConfig{cfg.report(), cfg.sweep.concurrency, cfg.sweep.prefetch, cfg.sweep.batch, cfg.sweep.runs},
		Redis:  reportRedis{srv.source, srv.version}, Sweep: cells, Skipped: cfg.sweep.skipped, server: srv,
	}
	best := &cells[0]
	for i := range cells {
		c := &cells[i]
		c.AckedPerS = *medianOf(c.runs, func(r *report) *float64 { return &r.AckedPerS })
		c.RedisCPU = medianOf(c.runs, func(r *report) *float64 { return r.RedisCPU })
		c.ClientCPU = medianOf(c.runs, func(r *report) *float64 { return r.ClientCPU })
		for _, run := range c.runs {
			c.Lost += run.Lost
		}
		if c.AckedPerS > best.AckedPerS {
			best = c
		}
	}
	best.Best = true
	return r
}

// medianOf is the median of what is known of the runs; nil when nothing is.
func medianOf(runs []*report, of func(*report) *float64) *float64 {
	var known []float64
	for _, r := range runs {
		if v := of(r); v != nil {
			known = append(known, *v)
		}
	}
	if len(known) == 0 {
		return nil
	}
	slices.Sort(known)
	middle := rounded((known[(len(known)-1)/2]+known[len(known)/2])/2, 3)
	return &middle
}

// firstUnbalanced is the first run whose books do not balance, nil when all do.
func (r *sweepReport) firstUnbalanced() *report {
	for _, c := range r.Sweep {
		for _, run := range c.runs {
			if !run.Reconciled {
				return run
			}
		}
	}
	return nil
}
