package handlertest

import (
	"context"
	"testing"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// TestTyped: good data reaches the handler, bad data the dead letters in its first delivery.
func TestTyped(t *testing.T) {
	each(t, func(r *rig) {
		type order struct {
			ID int64 `json:"order_id"`
		}
		ids := make(chan int64, 10)
		mux := router.NewMux()
		mux.Register(urn, router.Typed(func(_ context.Context, _ *delivery.Delivery, v order) error { ids <- v.ID; return nil }))
		p := r.start(r.config(mux))
		r.send(urn, map[string]any{"order_id": "no number"})
		r.send(urn, map[string]any{"order_id": 1042})
		p.await("both are settled", func(s pool.QueueStats) bool { return s.Acked+s.DeadLettered == 2 })
		if id := <-ids; id != 1042 || len(ids) != 0 {
			r.t.Errorf("the handler got %d, and %d more", id, len(ids))
		}
		dead := r.deadLetters()
		const want = "router: bad payload: $.order_id: expected an integer (int64), got string"
		if len(dead) != 1 || dead[0].Reason != "failed" || *dead[0].Error != want || *dead[0].Exception != "*router.PayloadError" {
			r.t.Errorf("dead letters %+v", dead)
		}
		if s := p.stats(); s.Started != 2 || r.left() != 0 {
			r.t.Errorf("%d runs, %d messages left", s.Started, r.left())
		}
	})
}
