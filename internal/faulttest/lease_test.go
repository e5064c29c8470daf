package faulttest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestB11RenewedLeaseOutlastsTheHandler runs a handler much longer than its lease: it starts once, and its
// lease is moved forward all the time.
func TestB11RenewedLeaseOutlastsTheHandler(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		lease := scaled(2*time.Second, 3*time.Second)
		work := scaled(5*time.Second, 10*time.Second)
		r := newSharedRig(t, layout)
		r.publish(1)
		p := r.start(pool.Config{Handler: r.sleeping(work), RetryAfter: lease})
		p.until("the handler runs", func(c pool.QueueStats) bool { return c.Started == 1 })

		var moves int
		var last float64
		testredis.Eventually(t, patience, func() bool {
			s := r.check()
			if len(s.scores) == 0 {
				return p.counts().Acked == 1
			}
			now, err := r.control.Time(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			if s.scores[0] <= float64(now.Unix()) {
				t.Errorf("the lease ran out: score %.0f at %d", s.scores[0], now.Unix())
			}
			if s.scores[0] < last {
				t.Errorf("the lease was moved back from %.0f to %.0f", last, s.scores[0])
			}
			if s.scores[0] > last {
				moves++
				last = s.scores[0]
			}
			return false
		}, "the handler's success is acked")
		// Scores are whole seconds, so a lease renewed every third of it is seen to move about once a second.
		if least := int(work/(lease/2)) - 1; moves-1 < least {
			t.Errorf("the lease moved forward %d times in %v, want at least every half of %v", moves-1, work, lease)
		}
		if c := p.counts(); c.Started != 1 || c.Late != 0 || c.Lost != 0 || c.Moved != 0 {
			t.Errorf("one start and no loss expected: %+v", c)
		}
		p.stopClean()
		r.awaitEmpty()
	})
}

// TestB11LeaseRunsOutWithoutRenewal is the same handler with renewal off: the message is delivered again, and
// the first run's ack is late and does not touch the second run's copy.
func TestB11LeaseRunsOutWithoutRenewal(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const lease = 2 * time.Second
		r := newSharedRig(t, layout)
		r.publish(1)
		starts := make(chan context.Context, 2)
		first, second := make(chan struct{}), make(chan struct{})
		turn := make(chan chan struct{}, 2)
		turn <- first
		turn <- second
		p := r.start(pool.Config{
			RetryAfter: lease, DisableLeaseRenewal: true, HandlerTimeout: lease - time.Second, Concurrency: 2,
			Handler: r.handler(func(ctx context.Context, _ int, _ *delivery.Delivery) error {
				gate := <-turn
				starts <- ctx
				<-gate // heeds no context
				return nil
			}),
		})
		ctx := <-starts
		testredis.Await(t, ctx.Done(), patience, "the end of the first run's context")
		if cause := context.Cause(ctx); !errors.Is(cause, pool.ErrHandlerTimeout) {
			t.Errorf("the first run was cancelled with %v, want ErrHandlerTimeout", cause)
		}
		begun := time.Now()
		testredis.Await(t, starts, patience, "the second delivery")
		if took := time.Since(begun); took > lease+2*time.Second {
			t.Errorf("delivered again %v after the first run's time was over, with a lease of %v", took, lease)
		}
		close(first)
		p.until("the late ack", func(c pool.QueueStats) bool { return c.Late == 1 })
		if s := r.check(); len(s.flight) != 1 {
			t.Errorf("%d messages in flight after the late ack, want the second run's copy", len(s.flight))
		}
		close(second)
		p.until("the second run's ack", func(c pool.QueueStats) bool { return c.Acked == 1 })
		r.awaitEmpty()
		p.stopClean()
		if c := p.counts(); c.Started != 2 || c.Late != 1 || c.Acked != 1 {
			t.Errorf("two starts, one late and one ack expected: %+v", c)
		}
	})
}

// TestB11HandlersThatOutrunTheirLeaseAreRefused: without renewal a handler must end before its lease does.
func TestB11HandlersThatOutrunTheirLeaseAreRefused(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		for name, tc := range map[string]struct {
			cfg  pool.Config
			want []string // in the error; none = it is accepted
		}{
			"the default timeout":  {pool.Config{DisableLeaseRenewal: true}, []string{"HandlerTimeout", "10m0s", "1m29s"}},
			"no timeout":           {pool.Config{DisableLeaseRenewal: true, HandlerTimeout: -1}, []string{"HandlerTimeout"}},
			"as long as the lease": {pool.Config{DisableLeaseRenewal: true, RetryAfter: 3 * time.Second, HandlerTimeout: 3 * time.Second}, []string{"HandlerTimeout", "3s", "2s"}},
			"a second shorter":     {pool.Config{DisableLeaseRenewal: true, RetryAfter: 3 * time.Second, HandlerTimeout: 2 * time.Second}, nil},
			"renewed":              {pool.Config{RetryAfter: 3 * time.Second}, nil},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tc.cfg.Layout, tc.cfg.Client = layout, testredis.Client(t, "127.0.0.1:1")
				tc.cfg.Queues, tc.cfg.Logger = []pool.Queue{{Name: "orders"}}, slog.New(slog.DiscardHandler)
				tc.cfg.Handler = delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return nil })
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				err := pool.New(tc.cfg).Run(ctx)
				if refused := errors.Is(err, pool.ErrConfig); refused != (tc.want != nil) {
					t.Fatalf("Run: %v", err)
				}
				for _, word := range tc.want {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("the error does not name %s: %v", word, err)
					}
				}
			})
		}
	})
}
