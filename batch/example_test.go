package batch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/babelpool/babelpool/batch"
	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
)

type row struct {
	ID    int64 `json:"order_id"`
	Total int64 `json:"total"`
}

// insert stands for a bulk insert: it says which rows were there already.
func insert(context.Context, []row) (duplicates map[int64]bool, err error) { return nil, nil }

// Rows are inserted by the hundred. When the database is away all of them fail; a row that can never be inserted is dead-lettered
// and keeps nobody else.
func ExampleTyped() {
	mux := router.NewMux()
	mux.Register("urn:babel:orders:created", batch.Typed(
		batch.Config{Size: 100, Wait: 50 * time.Millisecond},
		func(ctx context.Context, orders []*batch.Item[row]) error {
			rows := make([]row, len(orders))
			for i, o := range orders {
				rows[i] = o.Value
			}
			duplicates, err := insert(ctx, rows)
			if err != nil {
				return err
			}
			for _, o := range orders {
				if duplicates[o.Value.ID] {
					o.Done(delivery.DeadLetter(fmt.Errorf("order %d is there already", o.Value.ID)))
				}
			}
			return nil // acks the others
		}))
	// Output:
}
