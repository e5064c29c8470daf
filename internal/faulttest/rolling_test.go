package faulttest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// TestB51RollingDeploy runs an old consumer, which does not know the messages, beside a new one that does.
func TestB51RollingDeploy(t *testing.T) {
	const n = 100
	ignorant := func() delivery.Handler {
		mux := router.NewMux()
		mux.HandleFunc("urn:babel:fault:old", func(context.Context, *delivery.Delivery) error { return nil })
		return mux
	}
	// both starts the two at the same time, so that neither gets all messages.
	both := func(r *rig, cfg pool.Config) (old, latest *run) {
		cfg.Concurrency, cfg.Prefetch = 2, 4
		cfg.Handler = ignorant()
		old = r.start(cfg)
		cfg.Handler = r.handler(nil)
		latest = r.start(cfg)
		return old, latest
	}
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		t.Run("dead-letter", func(t *testing.T) { // the default
			t.Parallel()
			r := newRig(t, layout, redisproc.Config{})
			bodies := r.publish(n)
			old, latest := both(r, pool.Config{})
			testredis.Eventually(t, patience, func() bool {
				return old.counts().DeadLettered+latest.counts().Acked == n
			}, "each message handled, or dead-lettered by the old consumer")
			r.awaitEmpty() // which also checks that nothing is lost
			original := map[string]bool{}
			for _, body := range bodies {
				original[stem(body)] = true
			}
			for _, text := range r.snapshot().dead {
				var record struct {
					DeadLetter struct {
						Reason string `json:"reason"`
					} `json:"dead_letter"`
				}
				if err := json.Unmarshal([]byte(text), &record); err != nil || record.DeadLetter.Reason != "unknown_urn" {
					t.Errorf("%v, reason %q in %s", err, record.DeadLetter.Reason, text)
				}
				if !original[stem(text)] {
					t.Errorf("a dead letter with other bytes than were published: %s", text)
				}
			}
			if lines := old.logs.count("no handler for URN"); old.counts().UnknownURN > 0 && lines != 1 {
				t.Errorf("%d lines about one URN, want one a minute", lines)
			}
		})
		t.Run("release", func(t *testing.T) {
			if layout == pool.Legacy {
				return // it has no delayed messages; pool.TestUnknownReleaseLegacy has what it does
			}
			t.Parallel()
			r := newRig(t, layout, redisproc.Config{})
			r.publish(n)
			_, latest := both(r, pool.Config{UnknownURN: pool.UnknownRelease, UnknownURNDelay: time.Second, MaxAttempts: 2})
			testredis.Eventually(t, patience, func() bool { return latest.counts().Acked == n },
				"every message handled by the consumer that knows it")
			r.awaitEmpty()
			if dead := r.snapshot().dead; len(dead) > 0 {
				t.Errorf("%d dead letters: a release must not use an attempt up", len(dead))
			}
		})
	})
}
