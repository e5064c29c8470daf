package pool_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestScoreFormula covers Z5 and Z9 to the second: whatever the fraction of the server's clock, a failed
// message is due at floor(now) + ceil(delay), and so up to one second early. The imitation's clock stands still.
func TestScoreFormula(t *testing.T) {
	t.Parallel()
	for _, delay := range []float64{0.001, 0.5, 1, 1.2, 30} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			t.Parallel()
			mini := testredis.Mini(t)
			r := newRig(t, testredis.Backend{Client: testredis.Client(t, mini.Addr()), Prefix: testredis.Prefix(t)}, pool.Zset)
			const second, offsets = 1749132727, 20
			seen, handler := watch(func(d *delivery.Delivery) error {
				if d.Number == 1 {
					return errBoom
				}
				return nil
			})
			cfg := r.config(handler)
			cfg.FailureDelay, cfg.DisableLeaseRenewal, cfg.HandlerTimeout = &delay, true, time.Second
			p := r.start(cfg)
			due := float64(second) + math.Ceil(delay)
			for i := range offsets {
				mini.SetTime(time.Unix(second, int64(i)*int64(time.Second)/offsets))
				r.push(body(i, 0))
				receive(t, seen, "the delivery")
				p.settled(i + 1)
				wantEqual(t, fmt.Sprintf("score at %d/%d", i, offsets), r.delayScore(body(i, 1)), due)
			}
			// A moment before the score nothing comes, at the score all do.
			mini.SetTime(time.Unix(int64(due)-1, 999999999))
			r.push(body(99, 1)) // goes through a reserve of its own
			receive(t, seen, "the marker")
			wantEqual(t, "delayed", len(r.state().Delayed), offsets)
			mini.SetTime(time.Unix(int64(due), 0))
			collect(t, seen, offsets, "all are due")
			r.awaitSettled()
		})
	}
}

// TestDelays covers B33 on a running clock: no delivery before its score by the server's clock, and a real
// delay within (delay - 1 s, delay + 1 s + one poll]. It runs alone, because it measures.
func TestDelays(t *testing.T) {
	for _, delay := range []float64{1, 2} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			t.Parallel() // with the other delay
			on(t, pool.Zset, func(t *testing.T, r *rig) {
				const n = 20
				var mu sync.Mutex
				failed, early := map[string]time.Time{}, map[string]time.Duration{}
				seen, handler := watch(nil)
				cfg := r.config(function(func(ctx context.Context, d *delivery.Delivery) error {
					mu.Lock()
					defer mu.Unlock()
					now := r.serverTime()
					if d.Number == 1 {
						failed[d.Meta.ID] = now
						return errBoom
					}
					early[d.Meta.ID] = now.Sub(failed[d.Meta.ID])
					// The score was computed after failed was read, in the same second or a later one.
					if score := failed[d.Meta.ID].Unix() + int64(delay); now.Unix() < score {
						t.Errorf("%s came at %v, before its score %d", d.Meta.ID, now, score)
					}
					return handler.Handle(ctx, d)
				}))
				cfg.FailureDelay = &delay
				r.start(cfg)
				every := time.NewTicker(time.Second / n)
				defer every.Stop()
				for i := range n {
					<-every.C // spread over a second
					r.push(body(i, 0))
				}
				collect(t, seen, n, "all come back")
				whole := time.Duration(delay) * time.Second
				for id, d := range early {
					if d <= whole-time.Second || d > whole+2*time.Second {
						t.Errorf("%s waited %v, want about %v", id, d, whole)
					}
				}
				wantEqual(t, "measured", len(early), n)
			})
		})
	}
}

// TestWithoutToken covers B41: a message pushed without a token wakes nobody, and is found within about a
// second all the same. It runs alone, because it measures.
func TestWithoutToken(t *testing.T) {
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		seen, handler := watch(nil)
		r.start(r.config(handler))
		r.push(body(0, 0))
		receive(t, seen, "the pool runs")
		for i := range 3 {
			pushed := time.Now()
			r.pushBare(body(i+1, 0))
			receive(t, seen, "the message")
			if took := time.Since(pushed); took > 2*time.Second {
				t.Errorf("picked up after %v", took)
			}
		}
	})
}

// TestDelayedWakesAnIdlePool covers B39's last line: a due message does not wait for a push.
func TestDelayedWakesAnIdlePool(t *testing.T) {
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		seen, handler := watch(nil)
		r.start(r.config(handler))
		r.push(body(0, 0))
		receive(t, seen, "the pool runs")
		r.due(float64(r.serverTime().Unix()), body(1, 0))
		put := time.Now()
		receive(t, seen, "the message")
		if took := time.Since(put); took > 2*time.Second {
			t.Errorf("picked up after %v", took)
		}
	})
}
