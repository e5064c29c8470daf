package pool

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

// The calls that Config.OnCall is told of.
const (
	CallReserve  = "reserve"
	CallRecall   = "recall" // looks for the messages of a reserve whose reply was lost
	CallSettle   = "settle"
	CallHandBack = "hand_back"
	CallRenew    = "renew"
	CallSweep    = "sweep" // where no reserve does it in passing
	CallAudit    = "audit"
	CallTrim     = "trim" // discards dead letters beyond the limits
)

// Call is one call to Redis that a pool has made: one run of a script, or several where a batch is larger than one run
// carries. Calls that a stop cuts off are not told of.
type Call struct {
	Queue    string // logical name
	Layout   Layout
	Op       string        // one of the constants above
	Messages int           // carried, taken or moved; 0 beside an error, but for those sent
	Took     time.Duration // until the reply was read, or the call given up
	Err      error         // nil, or why it was not carried out; holds no bodies
}

// calls is a store that notes whether Redis answers, and tells OnCall. What blocks on an empty queue, and the small
// questions beside, go through unseen.
type calls struct {
	lua.Store
	queue    string
	layout   Layout
	counters *flow.Counters
	tell     func(Call) // nil = nobody
	log      *slog.Logger
	failed   *atomic.Bool // of all queues: tell has panicked, and that is logged
}

// Reserve is the Store's.
func (c *calls) Reserve(ctx context.Context, req flow.ReserveRequest) (flow.Reserved, error) {
	began := time.Now()
	got, err := c.Store.Reserve(ctx, req)
	c.made(ctx, CallReserve, taken(got), began, err)
	return got, err
}

// Recall is the Store's.
func (c *calls) Recall(ctx context.Context, call string, sent time.Time) (flow.Reserved, error) {
	began := time.Now()
	got, err := c.Store.Recall(ctx, call, sent)
	c.made(ctx, CallRecall, taken(got), began, err)
	return got, err
}

// taken is how many messages an answer holds.
func taken(got flow.Reserved) int {
	if got.Lease == nil {
		return 0
	}
	return len(got.Lease.Items)
}

// Settle is the Store's.
func (c *calls) Settle(ctx context.Context, settled []flow.Settlement) ([]flow.Result, error) {
	began := time.Now()
	results, err := c.Store.Settle(ctx, settled)
	c.made(ctx, CallSettle, len(settled), began, err)
	return results, err
}

// HandBack is the Store's.
func (c *calls) HandBack(ctx context.Context, held []*flow.Reservation) ([]flow.Result, error) {
	began := time.Now()
	results, err := c.Store.HandBack(ctx, held)
	c.made(ctx, CallHandBack, len(held), began, err)
	return results, err
}

// Renew is the Store's.
func (c *calls) Renew(ctx context.Context, handles []string) ([]flow.Result, error) {
	began := time.Now()
	results, err := c.Store.Renew(ctx, handles)
	c.made(ctx, CallRenew, len(handles), began, err)
	return results, err
}

// Sweep is the Store's.
func (c *calls) Sweep(ctx context.Context, limit int) (int, error) {
	began := time.Now()
	moved, err := c.Store.Sweep(ctx, limit)
	c.made(ctx, CallSweep, moved, began, err)
	return moved, err
}

// Audit is the Store's.
func (c *calls) Audit(ctx context.Context) (flow.Audit, error) {
	began := time.Now()
	found, err := c.Store.Audit(ctx)
	c.made(ctx, CallAudit, int(found.InFlight), began, err)
	return found, err
}

// Trim is the Store's.
func (c *calls) Trim(ctx context.Context, limits flow.DeadLetterLimits) (discarded int, more bool, err error) {
	began := time.Now()
	discarded, more, err = c.Store.Trim(ctx, limits)
	c.made(ctx, CallTrim, discarded, began, err)
	return discarded, more, err
}

// made notes a call, unless the pool itself gave it up, because it stops: that says nothing about Redis.
func (c *calls) made(ctx context.Context, op string, messages int, began time.Time, err error) {
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return
	case err == nil:
		c.counters.Answered(true)
	case away(err):
		c.counters.Answered(false)
	}
	if c.tell == nil {
		return
	}
	defer func() {
		if v := recover(); v != nil && c.failed.CompareAndSwap(false, true) {
			c.log.Error("OnCall panicked; that is logged once", "queue", c.queue, "panic", v, "stack", string(debug.Stack()))
		}
	}()
	c.tell(Call{Queue: c.queue, Layout: c.layout, Op: op, Messages: messages, Took: time.Since(began), Err: err})
}

// away reports whether an error means that Redis serves nobody here. One that concerns a key or a command says nothing
// of it: a queue whose key has another type must not take the whole process out of service.
func away(err error) bool {
	for _, class := range []error{flow.ErrTransient, flow.ErrAuth, flow.ErrUntrusted, redis.ErrClosed} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}
