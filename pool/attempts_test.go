package pool_test

import (
	"strings"
	"testing"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
)

// TestMaxAttempts covers A1 at its edges: the handler that fails in delivery n is given up when n reaches the
// limit, counted from what stands in the text; both counters of the record say what the handler saw (D2).
func TestMaxAttempts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		limit, stored int64
		runs          int64 // deliveries until it is given up
	}{
		"1":                     {1, 0, 1},
		"3":                     {3, 0, 3},
		"3, one before":         {3, 1, 2},
		"3, at the limit":       {3, 2, 1},
		"far beyond any number": {1 << 40, 1<<40 - 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, r *rig) {
				seen, handler := watch(func(*delivery.Delivery) error { return errBoom })
				cfg := r.config(handler)
				cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = row.limit, pool.Requeue, ptr(0.0)
				r.push(attemptsIn(goPlain, row.stored))
				p := r.start(cfg)
				for i := range row.runs {
					d := receive(t, seen, "a delivery")
					wantEqual(t, "attempts", d.Attempts, row.stored+i+first(r.layout))
					wantEqual(t, "number", d.Number, row.stored+i+1)
				}
				p.settled(int(row.runs))
				last := row.stored + row.runs - 1 + first(r.layout)
				r.wantRecords(dead(attemptsIn(goPlain, last), "failed", `"boom é/x"`, `"*errors.errorString"`, last))
				if last == 3 { // byte for byte what the Go SDK stores
					r.wantRecords(timeless(goDead))
				}
				p.stopped()
				s := p.stats()
				wantEqual(t, "started, failed, dead", []int64{s.Started, s.Failed, s.DeadLettered}, []int64{row.runs, row.runs, 1})
			})
		})
	}
}

// TestMaxAttemptsSuccess covers that the limit is no matter while handlers succeed.
func TestMaxAttemptsSuccess(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		cfg := r.config(fails(errBoom, 2))
		cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = 3, pool.Requeue, ptr(0.0)
		r.push(bodies(20)...)
		p := r.start(cfg)
		s := p.settled(60)
		wantEqual(t, "acked, failed", []int64{s.Acked, s.Failed}, []int64{20, 40})
		r.awaitSettled()
		r.wantDead()
	})
}

// TestNoMaxAttempts covers the default: never given up, whatever the number.
func TestNoMaxAttempts(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		const many = 1 << 50
		cfg := r.config(fails(errBoom, many+2))
		cfg.FailureDelay = ptr(0.0)
		r.push(body(1, many))
		s := r.start(cfg).settled(3)
		wantEqual(t, "failed, acked", []int64{s.Failed, s.Acked}, []int64{2, 1})
		r.awaitSettled()
		r.wantDead()
	})
}

// TestTooManyAttempts covers the last sentence of A1: in the zset layout, where a crash counts, a message that
// arrives with n beyond the limit is given up without running; in the legacy layout it runs.
func TestTooManyAttempts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		seen, handler := watch(nil)
		cfg := r.config(handler)
		cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = 3, pool.Requeue, ptr(0.0)
		told, onError := reports(10)
		cfg.OnError = onError
		r.push(body(2, 2), body(3, 3), body(4, 77))
		p := r.start(cfg)
		s := p.settled(3)
		if r.layout == pool.Legacy {
			wantEqual(t, "started, acked", []int64{s.Started, s.Acked}, []int64{3, 3})
			return
		}
		wantEqual(t, "handled", receive(t, seen, "the delivery").Meta.ID, "m-0002")
		for _, rep := range collect(t, told, 2, "the reports") {
			wantWords(t, rep.err.Error(), "delivered more often than MaxAttempts allows")
		}
		wantEqual(t, "started, acked, dead", []int64{s.Started, s.Acked, s.DeadLettered}, []int64{1, 1, 2})
		var got []string
		for _, d := range r.state().Dead {
			wantWords(t, d, `"reason":"failed"`, `"exception":"*errors.errorString"`)
			got = append(got, d[:strings.Index(d, `,"dead_letter"`)]+"}")
		}
		wantEqual(t, "texts", sortedBriefs(got), []string{body(3, 4), body(4, 78)})
	})
}
