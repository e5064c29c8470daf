package pool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

const unheard = "urn:babel:orders:unheard"

// unknown is a message nobody handles, of a certain age.
func unknown(id int, age time.Duration) string {
	return foreignURN(id, time.Now().Add(-age).UnixMilli())
}

// recorded is the record of a message without a handler.
func recorded(text string, attempts int64) string {
	return dead(attemptsIn(text, attempts), "unknown_urn", "null", "null", attempts)
}

// TestUnknownURN covers the default of D4: reported, dead-lettered in the shape the Go SDK writes, told to the
// log once a minute.
func TestUnknownURN(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		sample := strings.Replace(goPlain, urn, unheard, 1)
		told, onError := reports(10)
		cfg := r.config(function(ackAll))
		cfg.OnError, cfg.Concurrency = onError, 1 // one worker keeps the order
		r.push(sample, unknown(2, 0), unknown(3, 0))
		p := r.start(cfg)
		ids := map[string]bool{}
		for _, rep := range collect(t, told, 3, "the reports") {
			ids[rep.env.Meta.ID] = true
			if !errors.Is(rep.err, router.ErrUnknownURN) || rep.env.URN != unheard {
				t.Errorf("reported %v for %+v", rep.err, rep.env)
			}
		}
		wantEqual(t, "messages reported", len(ids), 3)
		s := p.settled(3)
		wantEqual(t, "dead, unknown, failed", []int64{s.DeadLettered, s.UnknownURN, s.Failed}, []int64{3, 3, 0})
		all := r.awaitSettled()
		if len(all.Dead) != 3 {
			t.Fatalf("dead letters: %q", all.Dead)
		}
		n := first(r.layout)
		got := timeless(all.Dead[0])
		wantEqual(t, "the first record", got, recorded(sample, n))
		if r.layout == pool.Legacy {
			wantEqual(t, "beside the Go SDK's", got, timeless(strings.Replace(goUnknown, urn, unheard, 1)))
		}
		if lines := r.logs.matching("no handler for URN", unheard); len(lines) != 1 {
			t.Errorf("logged %q", lines)
		}
	})
}

// TestOnUnknownURN covers the hook of D4: it runs in place of the handler, the message is acked, whatever the
// strategy says.
func TestOnUnknownURN(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		told := make(chan report, 10)
		cfg := r.config(function(ackAll))
		cfg.UnknownURN = pool.UnknownDeadLetter
		cfg.OnUnknownURN = func(ctx context.Context, err error, env envelope.Envelope, raw string) error {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("the hook has no time limit")
			}
			told <- report{err, env, raw}
			return nil
		}
		cfg.OnError = func(_ context.Context, err error, _ envelope.Envelope, _ string) { t.Errorf("OnError: %v", err) }
		text := unknown(1, 0)
		r.push(text)
		p := r.start(cfg)
		rep := receive(t, told, "the hook")
		if !errors.Is(rep.err, router.ErrUnknownURN) || rep.env.URN != unheard || rep.raw != attemptsIn(text, first(r.layout)) {
			t.Errorf("the hook was told %v of %+v", rep.err, rep.env)
		}
		s := p.settled(1)
		wantEqual(t, "acked, unknown, failed", []int64{s.Acked, s.UnknownURN, s.Failed}, []int64{1, 1, 0})
		r.awaitSettled()
		r.wantDead()
	})
}

// TestOnUnknownURNFails covers that a failing hook is a failing handler, also when it fails with the very error
// it was given (D4).
func TestOnUnknownURNFails(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func(err error) error{
		"error":     func(error) error { return errBoom },
		"the given": func(err error) error { return err },
		"panic":     func(error) error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, r *rig) {
				runs := make(chan int64, 10)
				cfg := r.config(function(ackAll))
				cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = 2, pool.Requeue, ptr(0.0)
				cfg.OnUnknownURN = func(_ context.Context, err error, env envelope.Envelope, _ string) error {
					runs <- env.Attempts
					return hook(err)
				}
				r.push(unknown(1, 0))
				p := r.start(cfg)
				n := first(r.layout)
				wantEqual(t, "attempts the hook saw", collect(t, runs, 2, "two runs"), []int64{n, n + 1})
				s := p.settled(2)
				wantEqual(t, "failed, dead, acked", []int64{s.Failed, s.DeadLettered, s.Acked}, []int64{2, 1, 0})
				d := r.awaitSettled().Dead
				if len(d) != 1 {
					t.Fatalf("dead letters: %q", d)
				}
				wantWords(t, d[0], `"reason":"failed"`)
			})
		})
	}
}

func TestUnknownDelete(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		told, onError := reports(1)
		cfg := r.config(function(ackAll))
		cfg.UnknownURN, cfg.OnError = pool.UnknownDelete, onError
		r.push(unknown(1, 0))
		p := r.start(cfg)
		receive(t, told, "the report")
		s := p.settled(1)
		wantEqual(t, "acked, unknown", []int64{s.Acked, s.UnknownURN}, []int64{1, 1})
		r.awaitSettled()
		r.wantDead()
	})
}

// TestUnknownFail covers the strategy that charges: the retry rules apply, and the record says so.
func TestUnknownFail(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		cfg := r.config(function(ackAll))
		cfg.UnknownURN, cfg.MaxAttempts, cfg.LegacyRetry, cfg.FailureDelay = pool.UnknownFail, 2, pool.Requeue, ptr(0.0)
		text := unknown(1, 0)
		r.push(text)
		s := r.start(cfg).settled(2)
		wantEqual(t, "failed, unknown, dead", []int64{s.Failed, s.UnknownURN, s.DeadLettered}, []int64{2, 2, 1})
		n := first(r.layout) + 1
		r.wantRecords(dead(attemptsIn(text, n), "failed", `"router: no handler for the URN"`, `"*errors.errorString"`, n))
	})
}

// TestUnknownRelease covers the strategy for rolling deploys in the zset layout: uncharged, so the ready text
// waits in delayed (Z7), until another worker takes it or it is too old.
func TestUnknownRelease(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		cfg := r.config(function(ackAll))
		cfg.UnknownURN, cfg.UnknownURNDelay, cfg.UnknownURNMaxAge = pool.UnknownRelease, 2500*time.Millisecond, time.Minute
		young, old := unknown(1, 0), unknown(2, time.Hour)
		odd := strings.Replace(unknown(3, 0), `,"attempts":0`, "", 1) // the counter goes in at reserve, and out again
		r.push(young, old, odd)
		before := r.serverTime().Unix()
		p := r.start(cfg)
		all := r.await("two are delayed", func(s state) bool { return len(s.Delayed) == 2 && len(s.Dead) == 1 })
		after := r.serverTime().Unix()
		wantEqual(t, "delayed", sortedBriefs(all.Delayed), sortedBriefs([]string{young, odd}))
		wantEqual(t, "dead", sortedBriefs(all.Dead), sortedBriefs([]string{recorded(old, 1)}))
		if score := int64(r.delayScore(young)); score < before+3 || score > after+3 {
			t.Errorf("the score is %d s after now, want 3", score-before)
		}
		p.settled(3)
		p.stopped()
		s := p.stats()
		wantEqual(t, "returned, dead, unknown, failed", []int64{s.Returned, s.DeadLettered, s.UnknownURN, s.Failed}, []int64{2, 1, 3, 0})

		// A worker that knows the URN.
		mux := router.NewMux()
		got := make(chan int64, 10)
		mux.HandleFunc(unheard, func(_ context.Context, d *delivery.Delivery) error {
			got <- d.Number
			return nil
		})
		cfg.Handler = mux
		r.start(cfg)
		wantEqual(t, "delivery numbers", collect(t, got, 2, "both come back"), []int64{1, 1})
		r.awaitSettled()
	})
}

// TestUnknownReleaseAges covers that the strategy ends: what nobody takes is dead-lettered in the end.
func TestUnknownReleaseAges(t *testing.T) {
	t.Parallel()
	on(t, pool.Zset, func(t *testing.T, r *rig) {
		cfg := r.config(function(ackAll))
		cfg.UnknownURN, cfg.UnknownURNDelay, cfg.UnknownURNMaxAge = pool.UnknownRelease, time.Second, 2*time.Second
		text := unknown(1, 0)
		r.push(text)
		p := r.start(cfg)
		r.await("it is dead-lettered", func(s state) bool { return len(s.Dead) == 1 })
		r.wantRecords(recorded(text, 1))
		testredis.Eventually(t, patience, func() bool {
			s := p.stats()
			return s.Returned >= 1 && s.DeadLettered == 1
		}, "both are counted")
	})
}

// TestUnknownReleaseLegacy covers that the layout without delays leaves young ones to their lease.
func TestUnknownReleaseLegacy(t *testing.T) {
	t.Parallel()
	on(t, pool.Legacy, func(t *testing.T, r *rig) {
		cfg := r.config(function(ackAll))
		cfg.UnknownURN, cfg.UnknownURNMaxAge, cfg.RetryAfter = pool.UnknownRelease, 2500*time.Millisecond, 2*time.Second
		young, old := unknown(1, 0), unknown(2, time.Hour)
		r.push(young, old)
		p := r.start(cfg)
		r.await("the young one is left", func(s state) bool {
			return len(s.InFlight) == 1 && s.InFlight[0] == young && len(s.Dead) == 1 && p.stats().Left == 1
		})
		r.wantRecords(recorded(old, 0))
		r.await("it is old by now", func(s state) bool { return len(s.Dead) == 2 })
		r.wantRecords(recorded(old, 0), recorded(young, 0))
		r.awaitSettled()
	})
}
