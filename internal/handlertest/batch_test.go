package handlertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/babelpool/babelpool/batch"
	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

type numbered struct {
	Number int `json:"number"`
}

// TestBatchHandler: each message of a batch has an outcome of its own in Redis: every tenth fails once, every hundredth is
// dead-lettered, and one in the middle does not fit. Batches are large.
func TestBatchHandler(t *testing.T) {
	each(t, func(r *rig) {
		const n = 1000
		var mu sync.Mutex
		batches, messages := 0, 0
		failed := map[int]bool{}
		mux := router.NewMux()
		mux.Register(urn, batch.Typed(batch.Config{Size: 50, Wait: 20 * time.Millisecond},
			func(_ context.Context, items []*batch.Item[numbered]) error {
				mu.Lock()
				defer mu.Unlock()
				batches, messages = batches+1, messages+len(items)
				for _, item := range items {
					switch i := item.Value.Number; {
					case i%100 == 50:
						item.Done(delivery.DeadLetter(errors.New("never")))
					case i%10 == 0 && !failed[i]:
						failed[i] = true
						item.Done(errors.New("not now"))
					}
				}
				return nil
			}))
		cfg := r.config(mux)
		zero := 0.0
		cfg.Concurrency, cfg.Prefetch, cfg.FailureDelay = 100, 400, &zero
		for i := range n {
			r.send(urn, map[string]any{"number": i})
		}
		r.send(urn, map[string]any{"number": "many"})
		p := r.start(cfg)
		p.await("all are gone", func(s pool.QueueStats) bool { return s.Acked+s.DeadLettered == n+1 })
		p.stop()
		s := p.stats()
		if s.Acked != n-10 || s.DeadLettered != 11 || s.Failed != 90+11 || s.Panics+s.Lost+s.Late != 0 || r.left() != 0 {
			r.t.Errorf("%+v", s)
		}
		if messages < 10*batches {
			r.t.Errorf("%d messages in %d batches", messages, batches)
		}
	})
}

// TestBatchAtAStop: a batch that is open when the pool stops still runs, and its messages are acked.
func TestBatchAtAStop(t *testing.T) {
	each(t, func(r *rig) {
		ran := make(chan int, 10)
		mux := router.NewMux()
		mux.Register(urn, batch.New(batch.Config{Size: 50, Wait: 300 * time.Millisecond}, func(_ context.Context, messages []*batch.Message) error {
			ran <- len(messages)
			return nil
		}))
		p := r.start(r.config(mux))
		for range 3 {
			r.send(urn, nil)
		}
		p.await("they wait in a batch", func(s pool.QueueStats) bool { return s.Started == 3 })
		p.stop()
		if s := p.stats(); len(ran) == 0 || s.Acked != 3 || s.Failed+s.HandedBack != 0 || r.left() != 0 {
			r.t.Errorf("%d batches; %+v", len(ran), s)
		}
	})
}

// TestBatchAtAHardStop: a batch that does not end in time goes back, uncharged.
func TestBatchAtAHardStop(t *testing.T) {
	each(t, func(r *rig) {
		began := make(chan struct{})
		mux := router.NewMux()
		mux.Register(urn, batch.New(batch.Config{Size: 3}, func(ctx context.Context, _ []*batch.Message) error {
			close(began)
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		cfg := r.config(mux)
		cfg.DrainTimeout = 50 * time.Millisecond
		p := r.start(cfg)
		for range 3 {
			r.send(urn, nil)
		}
		<-began
		p.stop()
		if s := p.stats(); s.HandedBack != 3 || s.Failed != 0 {
			r.t.Errorf("%+v", s)
		}
	})
}
