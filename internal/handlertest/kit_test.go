package handlertest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/routertest"
)

// scenarios is a mux with a handler for each way a run can end.
func scenarios() (*router.Mux, []string) {
	mux := router.NewMux()
	var urns []string
	add := func(urn string, f func(d *delivery.Delivery) error) {
		urns = append(urns, urn)
		mux.HandleFunc(urn, func(_ context.Context, d *delivery.Delivery) error { return f(d) })
	}
	boom := errors.New("boom")
	add("urn:ack", func(*delivery.Delivery) error { return nil })
	add("urn:fail", func(*delivery.Delivery) error { return boom })
	add("urn:panic", func(*delivery.Delivery) error { panic(boom) })
	add("urn:final", func(*delivery.Delivery) error { return delivery.DeadLetter(boom) })
	add("urn:later", func(*delivery.Delivery) error { return delivery.RetryAfter(0, boom) })
	add("urn:second", func(d *delivery.Delivery) error {
		if d.Number < 2 {
			return boom
		}
		return nil
	})
	return mux, append(urns, "urn:nobody")
}

// TestKitAgreesWithAPool: what the test kit says of a config is what a pool does on a real server with it, run for run.
func TestKitAgreesWithAPool(t *testing.T) {
	each(t, func(r *rig) {
		mux, urns := scenarios()
		var mu sync.Mutex
		runs := map[string][]string{} // by URN: the delivery numbers and what was told to OnError
		note := func(urn, text string) {
			mu.Lock()
			defer mu.Unlock()
			runs[urn] = append(runs[urn], text)
		}
		mux.Use(func(next delivery.Handler) delivery.Handler {
			return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
				note(d.URN, "delivery "+strconv.FormatInt(d.Number, 10))
				return next.Handle(ctx, d)
			})
		})
		cfg := r.config(mux)
		zero := 0.0
		cfg.FailureDelay = &zero
		cfg.RetryAfter = 2 * time.Second
		cfg.OnError = func(_ context.Context, err error, env envelope.Envelope, _ string) { note(env.URN, err.Error()) }
		p := r.start(cfg)
		for _, urn := range urns {
			r.send(urn, nil)
		}
		p.await("all are gone", func(s pool.QueueStats) bool { return s.Acked+s.DeadLettered == int64(len(urns)) })
		p.stop() // and all is told
		lived, stats := runs, p.stats()

		runs = map[string][]string{}
		policy, err := cfg.Policy()
		if err != nil {
			r.t.Fatal(err)
		}
		kit := routertest.New(routertest.Config{Handler: mux, Layout: r.layout, Queue: queue, Policy: policy})
		counted := map[routertest.Fate]int64{}
		for _, urn := range urns {
			for _, out := range kit.RunToEnd(r.t.Context(), routertest.Message{URN: urn}, 10) {
				counted[out.Fate]++
			}
		}
		for _, all := range []map[string][]string{lived, runs} { // a pool settles first and tells then: the next run may be sooner
			for _, notes := range all {
				slices.Sort(notes)
			}
		}
		if diff := cmp.Diff(lived, runs); diff != "" {
			r.t.Errorf("runs (-pool +kit):\n%s", diff)
		}
		want := map[routertest.Fate]int64{routertest.Acked: stats.Acked, routertest.DeadLettered: stats.DeadLettered}
		if r.layout == pool.Legacy {
			want[routertest.Requeued] = stats.Requeued
		} else {
			want[routertest.Released] = stats.Released
		}
		if diff := cmp.Diff(want, counted); diff != "" {
			r.t.Errorf("fates (-pool +kit):\n%s", diff)
		}
	})
}
