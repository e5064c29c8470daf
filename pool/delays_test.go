package pool_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
)

const month = 30 * 24 * 60 * 60 // seconds; the longest delay (Z6)

// TestFailureDelays is the table of Z6: what a failed message's score in delayed is, by what is configured and
// by k, the attempts its handler saw. The score is floor(now) + whole seconds (Z5).
func TestFailureDelays(t *testing.T) {
	t.Parallel()
	policy := func(f func(k int64) float64) func(*pool.Config) {
		return func(c *pool.Config) { c.BackoffPolicy = f }
	}
	backoff := func(b pool.Backoff) func(*pool.Config) { return func(c *pool.Config) { c.Backoff = b } }
	for name, row := range map[string]struct {
		change  func(*pool.Config)
		k       int64
		verdict error // errBoom when nil
		want    int64
	}{
		"fixed":                  {func(c *pool.Config) { c.FailureDelay = ptr(7.0) }, 1, nil, 7},
		"fixed, rounded up":      {func(c *pool.Config) { c.FailureDelay = ptr(0.001) }, 1, nil, 1},
		"fixed, bounded":         {func(c *pool.Config) { c.FailureDelay = ptr(1e9) }, 1, nil, month},
		"fixed goes first":       {func(c *pool.Config) { c.FailureDelay, c.BackoffPolicy = ptr(7.0), func(int64) float64 { return 9 } }, 3, nil, 7},
		"policy":                 {policy(func(k int64) float64 { return float64(10 * k) }), 4, nil, 40},
		"policy, rounded up":     {policy(func(int64) float64 { return 1.2 }), 1, nil, 2},
		"policy, +Inf":           {policy(func(int64) float64 { return math.Inf(1) }), 1, nil, month},
		"policy, 1e300":          {policy(func(int64) float64 { return 1e300 }), 1, nil, month},
		"policy goes before":     {func(c *pool.Config) { c.BackoffPolicy, c.Backoff.Base = func(int64) float64 { return 9 }, time.Second }, 1, nil, 9},
		"base alone":             {backoff(pool.Backoff{Base: 3 * time.Second}), 50, nil, 3},
		"multiplier, k = 1":      {backoff(pool.Backoff{Base: 3 * time.Second, Multiplier: 2}), 1, nil, 3},
		"multiplier, k = 4":      {backoff(pool.Backoff{Base: 3 * time.Second, Multiplier: 2}), 4, nil, 24},
		"multiplier 1.5":         {backoff(pool.Backoff{Base: 3 * time.Second, Multiplier: 1.5}), 3, nil, 7},
		"max":                    {backoff(pool.Backoff{Base: 3 * time.Second, Multiplier: 2, Max: 20 * time.Second}), 4, nil, 20},
		"no overflow, k = 64":    {backoff(pool.Backoff{Base: time.Hour, Multiplier: 1e9}), 64, nil, month},
		"no overflow, k = 2^31":  {backoff(pool.Backoff{Base: 1, Multiplier: 2}), 1 << 31, nil, month},
		"no overflow, largest k": {backoff(pool.Backoff{Base: time.Hour, Multiplier: 2}), 9007199254740991, nil, month},
		"verdict":                {func(c *pool.Config) { c.FailureDelay = ptr(7.0) }, 1, delivery.RetryAfter(11*time.Second, errBoom), 11},
		"verdict alone":          {func(*pool.Config) {}, 1, delivery.RetryAfter(1100*time.Millisecond, nil), 2},
		"verdict, wrapped":       {func(*pool.Config) {}, 1, fmt.Errorf("wrapped: %w", delivery.RetryAfter(5*time.Second, errBoom)), 5},
		"verdict, bounded":       {func(*pool.Config) {}, 1, delivery.RetryAfter(1000*time.Hour, nil), month},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, pool.Zset, func(t *testing.T, r *rig) {
				seen, handler := watch(func(*delivery.Delivery) error {
					if row.verdict != nil {
						return row.verdict
					}
					return errBoom
				})
				cfg := r.config(handler)
				row.change(&cfg)
				r.push(body(1, row.k-1))
				r.start(cfg)
				before := r.serverTime().Unix()
				d := receive(t, seen, "the delivery")
				wantEqual(t, "k", d.Attempts, row.k)
				r.await("it is delayed", func(s state) bool { return len(s.Delayed) == 1 })
				after := r.serverTime().Unix()
				score := int64(r.delayScore(body(1, row.k)))
				if score < before+row.want || score > after+row.want {
					t.Errorf("the score is %d s after now, want %d", score-before, row.want)
				}
			})
		})
	}
}

// delayScore is the score of a member of delayed.
func (r *rig) delayScore(member string) float64 {
	r.t.Helper()
	score, err := r.Client.ZScore(r.t.Context(), r.keys.delayed, member).Result()
	if err != nil {
		r.t.Errorf("score of %s: %v", member, err)
	}
	return score
}

// TestNoDelay covers what releases a failed message at once: it comes back long before its lease would bring
// it, and with one attempt more (Z5: raised at reserve, not again at release).
func TestNoDelay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change  func(*pool.Config)
		verdict error
	}{
		"fixed 0":       {func(c *pool.Config) { c.FailureDelay = ptr(0.0) }, errBoom},
		"policy NaN":    {func(c *pool.Config) { c.BackoffPolicy = func(int64) float64 { return math.NaN() } }, errBoom},
		"policy -1":     {func(c *pool.Config) { c.BackoffPolicy = func(int64) float64 { return -1 } }, errBoom},
		"policy -Inf":   {func(c *pool.Config) { c.BackoffPolicy = func(int64) float64 { return math.Inf(-1) } }, errBoom},
		"verdict 0":     {func(*pool.Config) {}, delivery.RetryAfter(0, errBoom)},
		"verdict below": {func(c *pool.Config) { c.FailureDelay = ptr(60.0) }, delivery.RetryAfter(-time.Hour, errBoom)},
		"verdict alone": {func(c *pool.Config) { c.MaxAttempts = 5 }, delivery.RetryAfter(0, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, pool.Zset, func(t *testing.T, r *rig) {
				seen, handler := watch(func(d *delivery.Delivery) error {
					if d.Number < 4 {
						return row.verdict
					}
					return nil
				})
				cfg := r.config(handler)
				row.change(&cfg)
				r.push(body(1, 0))
				p := r.start(cfg)
				for n := int64(1); n <= 4; n++ {
					d := receive(t, seen, "a delivery")
					wantEqual(t, "number", d.Number, n)
					wantEqual(t, "body", d.Body, body(1, n))
				}
				p.settled(4)
				r.awaitSettled()
				s := p.stats()
				wantEqual(t, "failed, released, acked", []int64{s.Failed, s.Released, s.Acked}, []int64{3, 3, 1})
			})
		})
	}
}

// TestFullJitter covers that jitter stays below the delay and spreads it (Z6, B35).
func TestFullJitter(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		const n, bound = 200, 1000
		cfg := r.config(function(fail))
		cfg.Backoff = pool.Backoff{Base: time.Hour, Multiplier: 2, Max: bound * time.Second, Jitter: pool.FullJitter}
		r.push(bodies(n)...)
		before := r.serverTime().Unix()
		p := r.start(cfg)
		p.settled(n)
		after := r.serverTime().Unix()
		scored, err := r.Client.ZRangeWithScores(t.Context(), r.keys.delayed, 0, -1).Result()
		r.must(err)
		different := map[float64]bool{}
		for _, z := range scored {
			different[z.Score] = true
			if d := int64(z.Score); d < before || d > after+bound {
				t.Errorf("a delay of %d s", d-before)
			}
		}
		if len(different) < n/4 {
			t.Errorf("%d delays, %d of them different", len(scored), len(different))
		}
	})
}
