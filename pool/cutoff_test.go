package pool

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

// hangingStore is a store whose audit ends with its context.
type hangingStore struct{ lua.Store }

func (hangingStore) Audit(ctx context.Context) (flow.Audit, error) {
	<-ctx.Done()
	return flow.Audit{}, errors.Join(flow.ErrTransient, ctx.Err())
}

// TestCallCutOffByAStop: it is no outage and no error of Redis. One that took too long is both.
func TestCallCutOffByAStop(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ends func(context.Context) (context.Context, context.CancelFunc)
		told int
	}{
		"stopped": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			c, f := context.WithCancel(ctx)
			f()
			return c, f
		}, 0},
		"too long": {func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 1) }, 1},
	} {
		ctx, cancel := tc.ends(t.Context())
		told, counters := 0, &flow.Counters{}
		c := calls{Store: hangingStore{}, counters: counters, tell: func(Call) { told++ }}
		if _, err := c.Audit(ctx); err == nil {
			t.Errorf("%s: no error", name)
		}
		if away := counters.Away.Turn(time.Now().Add(time.Second)) > 0; told != tc.told || away != (tc.told == 1) {
			t.Errorf("%s: told %d times, away %t", name, told, away)
		}
		cancel()
	}
}
