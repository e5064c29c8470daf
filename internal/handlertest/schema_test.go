package handlertest

import (
	"context"
	"testing"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/schema"
)

// TestSchema: what breaks its schema does not reach the handler, and is dead in its first delivery.
func TestSchema(t *testing.T) {
	each(t, func(r *rig) {
		schemas, err := schema.Compile(map[string]string{urn: `{"properties":{"order_id":{"type":"integer"}},"required":["order_id"]}`})
		if err != nil {
			r.t.Fatal(err)
		}
		handled := make(chan string, 10)
		mux := router.NewMux()
		mux.Use(schemas.Validate)
		mux.HandleFunc(urn, func(_ context.Context, d *delivery.Delivery) error { handled <- d.Data; return nil })
		p := r.start(r.config(mux))
		for _, data := range []map[string]any{{"order_id": "secret-4111"}, {"order_id": 1042}, nil} {
			r.send(urn, data)
		}
		p.await("all are settled", func(s pool.QueueStats) bool { return s.Acked == 1 && s.DeadLettered == 2 })
		if data := <-handled; data != `{"order_id":1042}` || len(handled) != 0 {
			r.t.Errorf("handled %s and %d more", data, len(handled))
		}
		errors := map[string]bool{}
		for _, dead := range r.deadLetters() {
			errors[dead.Reason+", "+*dead.Exception+", "+*dead.Error] = true
		}
		const of = "failed, *schema.Error, schema: data breaks its schema: $.order_id: "
		if !errors[of+"type: expected integer, got string"] || !errors[of+"required: is missing"] {
			r.t.Errorf("dead letters: %v", errors)
		}
		if lines := r.logs.With("4111"); lines != nil {
			r.t.Errorf("the log shows the message: %v", lines)
		}
	})
}
