package pool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
)

// TestLeftToLease covers the default in both layouts (L6, Z5): a failed message stays reserved, comes back
// after RetryAfter, and its slot is free meanwhile. Attempts are counted in the zset layout alone.
func TestLeftToLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		seen, handler := watch(func(d *delivery.Delivery) error {
			if d.Meta.ID == "m-0001" {
				return errBoom
			}
			return nil
		})
		cfg := r.config(handler)
		cfg.Concurrency, cfg.Prefetch, cfg.RetryAfter = 1, 1, 2*time.Second
		r.push(body(1, 0))
		p := r.start(cfg)
		firstSeen := receive(t, seen, "the first delivery")
		started := time.Now()
		left := r.await("it is in flight", func(s state) bool { return len(s.InFlight) == 1 && p.stats().Left == 1 })
		wantEqual(t, "in flight", left.InFlight, []string{body(1, first(r.layout))})
		r.push(body(2, 0)) // through the only slot
		wantEqual(t, "the next", receive(t, seen, "another message").Meta.ID, "m-0002")

		again := receive(t, seen, "the second delivery")
		if d := time.Since(started); d < time.Second || d > patience/2 {
			t.Errorf("it came back after %v", d)
		}
		attempts := []int64{firstSeen.Attempts, again.Attempts, firstSeen.Number, again.Number}
		if r.layout == pool.Zset {
			wantEqual(t, "attempts and numbers", attempts, []int64{1, 2, 1, 2})
		} else {
			wantEqual(t, "attempts and numbers", attempts, []int64{0, 0, 1, 1})
			wantEqual(t, "body", again.Body, body(1, 0))
		}
		p.stopped()
		s := p.stats()
		wantEqual(t, "started, acked, failed, left", []int64{s.Started, s.Acked, s.Failed, s.Left}, []int64{3, 1, 2, 2})
		r.wantDead()
	})
}

// TestRequeue covers the opt-in of L6: a failed message goes to the tail, attempts raised in its text and in no
// other byte, and ends in the dead letters when MaxAttempts is reached (D2).
func TestRequeue(t *testing.T) {
	t.Parallel()
	on(t, pool.Legacy, func(t *testing.T, r *rig) {
		stored := make(chan string, 10)
		seen, handler := watch(func(d *delivery.Delivery) error {
			if d.Meta.ID != "22222222-2222-4222-8222-222222222222" {
				return nil
			}
			stored <- r.stored(0)
			return errBoom
		})
		cfg := r.config(handler)
		cfg.Concurrency, cfg.Prefetch, cfg.LegacyRetry, cfg.MaxAttempts = 1, 1, pool.Requeue, 3
		r.push(goPlain, body(2, 0))
		p := r.start(cfg)
		var order []string
		for _, d := range collect(t, seen, 4, "four deliveries") {
			order = append(order, fmt.Sprint(d.Meta.ID[:4], d.Attempts, d.Number))
		}
		wantEqual(t, "order", order, []string{"22220 1", "m-000 1", "22221 2", "22222 3"})
		wantEqual(t, "stored", collect(t, stored, 3, "what was stored"), []string{goPlain, goRetried, attemptsIn(goPlain, 2)})
		p.settled(4)
		r.wantRecords(timeless(strings.ReplaceAll(goDead, `"attempts":3`, `"attempts":2`)))
		s := p.stats()
		wantEqual(t, "failed, requeued, dead, acked", []int64{s.Failed, s.Requeued, s.DeadLettered, s.Acked}, []int64{3, 2, 1, 1})
		r.wantKeys("orders.dlq")
	})
}

// stored is the value in flight at a place. It may be called by a handler.
func (r *rig) stored(at int64) string {
	var value []string
	var err error
	if r.layout == pool.Zset {
		value, err = r.Client.ZRange(context.Background(), r.keys.inFlight, at, at).Result()
	} else {
		value, err = r.Client.LRange(context.Background(), r.keys.inFlight, at, at).Result()
	}
	if err != nil || len(value) != 1 {
		r.t.Errorf("in flight: %q, %v", value, err)
		return ""
	}
	return value[0]
}

// TestHeadersSurviveRetries covers F3 and F4: a framed message keeps its frame through requeues, releases and
// leases, byte for byte but for the counter; its dead letter is the body alone (D2).
func TestHeadersSurviveRetries(t *testing.T) {
	t.Parallel()
	for name, sample := range map[string]string{"python": pythonFramed, "go": goFramed, "node": nodeFramed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, r *rig) {
				bare := inner(t, sample)
				stored := make(chan string, 10)
				seen, handler := watch(func(*delivery.Delivery) error { stored <- r.stored(0); return errBoom })
				cfg := r.config(handler)
				cfg.LegacyRetry, cfg.MaxAttempts, cfg.FailureDelay = pool.Requeue, 3, ptr(0.0)
				r.push(sample)
				p := r.start(cfg)
				for n := int64(1); n <= 3; n++ {
					d := receive(t, seen, "a delivery")
					wantEqual(t, "headers", d.Headers, traced)
					value := receive(t, stored, "the stored value")
					if r.layout == pool.Zset {
						// The outer counter is the delivery number; the body is not touched (F4).
						wantEqual(t, "stored", value, strings.TrimSuffix(sample, "}")+fmt.Sprintf(`,"attempts":%d}`, n))
						wantEqual(t, "body", d.Body, bare)
						wantEqual(t, "attempts and number", []int64{d.Attempts, d.Number}, []int64{n, n})
						continue
					}
					wantEqual(t, "stored", value, strings.Replace(sample, `\"attempts\":0`, fmt.Sprintf(`\"attempts\":%d`, n-1), 1))
					wantEqual(t, "body", d.Body, attemptsIn(bare, n-1))
					wantEqual(t, "attempts and number", []int64{d.Attempts, d.Number}, []int64{n - 1, n})
				}
				p.settled(3)
				if r.layout == pool.Zset {
					r.wantRecords(dead(bare, "failed", `"boom é/x"`, `"*errors.errorString"`, 3))
				} else {
					r.wantRecords(dead(attemptsIn(bare, 2), "failed", `"boom é/x"`, `"*errors.errorString"`, 2))
				}
			})
		})
	}
}

// TestFrameLeftToLease covers F3 for what needs no edit: a frame comes back as it was.
func TestFrameLeftToLease(t *testing.T) {
	t.Parallel()
	on(t, pool.Legacy, func(t *testing.T, r *rig) {
		seen, handler := watch(func(*delivery.Delivery) error { return errBoom })
		cfg := r.config(handler)
		cfg.RetryAfter = 2 * time.Second
		r.push(pythonFramed)
		r.start(cfg)
		for range 2 {
			d := receive(t, seen, "a delivery")
			wantEqual(t, "headers", d.Headers, traced)
			wantEqual(t, "attempts", d.Attempts, 0)
		}
		r.await("it is in flight as it was published", func(s state) bool {
			return len(s.InFlight) == 1 && s.InFlight[0] == pythonFramed
		})
	})
}

// customError is an error of a handler's own.
type customError struct{ text string }

func (e *customError) Error() string { return e.text }

// TestDeadLetterVerdict covers the verdict: final at the first failure, in both layouts, with the handler's own
// error in the record.
func TestDeadLetterVerdict(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 2000)
	for name, row := range map[string]struct {
		verdict            error
		errText, exception string
	}{
		"plain":   {delivery.DeadLetter(errBoom), `"boom é/x"`, `"*errors.errorString"`},
		"its own": {delivery.DeadLetter(&customError{"no <&> \"such\" order"}), `"no <&> \"such\" order"`, `"*pool_test.customError"`},
		"wrapped": {fmt.Errorf("wrapped: %w", delivery.DeadLetter(errBoom)), `"boom é/x"`, `"*errors.errorString"`},
		"nothing": {delivery.DeadLetter(nil), `"dead-letter"`, `"*delivery.DeadLetterError"`},
		"long":    {delivery.DeadLetter(errors.New(long)), `"` + long[:2048] + `"`, `"*errors.errorString"`}, // B42
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, r *rig) {
				cfg := r.config(function(func(context.Context, *delivery.Delivery) error { return row.verdict }))
				if r.layout == pool.Zset {
					cfg.FailureDelay, cfg.MaxAttempts = ptr(0.0), 9
				}
				told, onError := reports(1)
				cfg.OnError = onError
				r.push(body(1, 0))
				p := r.start(cfg)
				rep := receive(t, told, "OnError")
				if !errors.Is(rep.err, row.verdict) || rep.env.Meta.ID != "m-0001" || rep.raw != body(1, first(r.layout)) {
					t.Errorf("reported %v for %+v", rep.err, rep.env)
				}
				p.settled(1)
				n := first(r.layout)
				r.wantRecords(dead(body(1, n), "failed", row.errText, row.exception, n))
			})
		})
	}
}
