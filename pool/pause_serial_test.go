//go:build serial && !race

package pool_test

import (
	"testing"
	"time"
)

// TestSerialPausedWithinASecond: from the moment the queue's key is there, it takes a pool a second at most to hand back
// what nobody started (R6).
func TestSerialPausedWithinASecond(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 2, 50
		r.push(bodies(80)...)
		r.start(cfg)
		collect(t, b.running, 2, "two run")
		for range 3 {
			r.await("the buffer is full", func(s state) bool { return len(s.InFlight) == 50 })
			began := time.Now()
			r.must(r.Client.Set(t.Context(), r.keys.paused, "1", 0).Err())
			r.await("handed back", func(s state) bool { return len(s.InFlight) == 2 })
			if took := time.Since(began); took > 1200*time.Millisecond {
				t.Errorf("handed back after %s", took)
			}
			r.must(r.Client.Del(t.Context(), r.keys.paused).Err())
		}
		b.letGo()
	})
}
