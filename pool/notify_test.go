package pool_test

import (
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestTokens covers B41: however messages came to be ready, there are never more tokens than messages while
// the queue rests, and none when it is empty. A paused pool shows the state between.
func TestTokens(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		bare, told, delayed, expired, spare int // messages; spare is of tokens alone
	}{
		"nothing":          {},
		"with tokens":      {told: 100},
		"without tokens":   {bare: 100},
		"both":             {bare: 70, told: 30},
		"delayed":          {delayed: 500},
		"expired":          {expired: 500},
		"everything":       {bare: 10, told: 20, delayed: 300, expired: 200},
		"spare tokens":     {told: 5, spare: 50},
		"tokens, no queue": {spare: 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, pool.Zset, func(t *testing.T, r *rig) {
				n := 0
				next := func(count int, attempts int64) []string {
					texts := make([]string, count)
					for i := range texts {
						texts[i] = body(n, attempts)
						n++
					}
					return texts
				}
				now := float64(r.serverTime().Unix())
				r.pushBare(next(row.bare, 0)...)
				r.push(next(row.told, 0)...)
				r.due(now, next(row.delayed, 0)...)
				r.lease(now-1, next(row.expired, 1)...)
				for range row.spare {
					r.rpush(r.keys.notify, "1")
				}
				r.must(r.Client.Set(t.Context(), r.keys.paused, "1", 0).Err())
				cfg := r.config(function(ackAll))
				cfg.MigrationBatch, cfg.PollInterval = 300, 50*time.Millisecond
				p := r.start(cfg)
				s := r.await("all are ready", func(s state) bool {
					return len(s.Ready) == n && len(s.Delayed)+len(s.InFlight) == 0
				})
				if tokens := row.told + row.delayed + row.expired + row.spare; s.Notify != tokens {
					t.Errorf("%d tokens while paused, want %d", s.Notify, tokens) // one for each that was moved (Z2)
				}
				r.must(r.Client.Del(t.Context(), r.keys.paused).Err())
				testredis.Eventually(t, patience, func() bool { return p.stats().Acked == int64(n) }, "all are acked")
				r.await("no token is left", func(s state) bool { return s.Notify == 0 })
				r.wantKeys()
			})
		})
	}
}

// TestMigrationBatch covers Z2's bound: one pass moves no more than MigrationBatch, the next pass the rest.
func TestMigrationBatch(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		r.due(float64(r.serverTime().Unix()), bodies(500)...)
		r.must(r.Client.Set(t.Context(), r.keys.paused, "1", 0).Err())
		cfg := r.config(function(ackAll))
		cfg.MigrationBatch, cfg.PollInterval = 300, 2*time.Second
		p := r.start(cfg)
		s := r.await("one pass", func(s state) bool { return len(s.Ready) > 0 })
		wantEqual(t, "ready, tokens, delayed", []int{len(s.Ready), s.Notify, len(s.Delayed)}, []int{300, 300, 200})
		s = r.await("another pass", func(s state) bool { return len(s.Ready) > 300 })
		wantEqual(t, "ready, tokens, delayed", []int{len(s.Ready), s.Notify, len(s.Delayed)}, []int{500, 500, 0})
		testredis.Eventually(t, patience, func() bool { return p.stats().Moved == 500 }, "they are counted")
		wantEqual(t, "order", s.Ready[:2], bodies(2))
	})
}

// TestTokensAfterStop covers that a stop leaves no more tokens than messages, and a token for whoever is next.
func TestTokensAfterStop(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 2, 50
		r.push(bodies(30)...)
		r.pushBare(body(30, 0), body(31, 0))
		p := r.start(cfg)
		collect(t, b.running, 2, "two run")
		r.await("all are reserved", func(s state) bool { return len(s.InFlight) == 32 })
		wantEqual(t, "tokens while all are reserved", r.state().Notify, 0)
		p.cancel()
		r.await("thirty are handed back", func(s state) bool { return len(s.Ready) == 30 })
		b.letGo()
		p.stopped()
		if s := r.state(); s.Notify != len(s.Ready) {
			t.Errorf("%d tokens for %d messages", s.Notify, len(s.Ready))
		}
	})
}

// TestSpareTokens covers that a surplus of tokens is cut while messages are left, not only at the end.
func TestSpareTokens(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		b := r.block()
		cfg := r.config(b)
		cfg.Concurrency, cfg.Prefetch = 2, 10
		r.push(bodies(30)...)
		r.rpush(r.keys.notify, bodies(100)...) // whatever a token says
		p := r.start(cfg)
		s := r.await("ten are reserved", func(s state) bool { return len(s.InFlight) == 10 })
		wantEqual(t, "tokens for what is left", s.Notify, len(s.Ready))
		b.letGo()
		p.settled(30)
		r.awaitSettled()
		r.wantKeys()
	})
}
