package router

import (
	"context"
	"sync"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// handlerContext is the context of one handler run: it ends with its parent (the pool's hard stop), at its
// deadline, when Cancel is called, and when the run is over.
//
// The real context behind it is made when somebody first waits for it or reads a value: the standard ones cost
// about eight allocations, a timer and the parent's lock, and a fast handler looks at none. Until then there is
// nobody whom an end could reach.
type handlerContext struct {
	parent   context.Context //nolint:containedctx // it is a context itself
	deadline time.Time       // zero = none

	mu    sync.Mutex
	real  context.Context //nolint:containedctx // nil until it is needed
	stop  context.CancelCauseFunc
	cause error // of the end; nil while it runs
}

// Deadline is when the handler's time is over.
func (c *handlerContext) Deadline() (time.Time, bool) {
	if c.deadline.IsZero() {
		return c.parent.Deadline()
	}
	return c.deadline, true
}

// Done is closed when the context ends.
func (c *handlerContext) Done() <-chan struct{} { return c.make().Done() }

// Err is nil while the context has not ended.
func (c *handlerContext) Err() error { return c.make().Err() }

// Value is the parent's; context.Cause finds the cause through it.
func (c *handlerContext) Value(key any) any { return c.make().Value(key) }

// make returns the real context.
func (c *handlerContext) make() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real
	}
	ctx, cancel := context.WithCancelCause(c.parent)
	c.stop = cancel
	if !c.deadline.IsZero() {
		timed, stop := context.WithDeadlineCause(ctx, c.deadline, flow.ErrHandlerTimeout)
		ctx, c.stop = timed, func(cause error) { cancel(cause); stop() }
	}
	if c.cause != nil {
		c.stop(c.cause)
	}
	c.real = ctx
	return ctx
}

// Cancel ends the context. The first cause counts.
func (c *handlerContext) Cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	c.cause = cause
	if c.stop != nil {
		c.stop(cause)
	}
}

// finish ends the context after the run: its timer and its place with the parent are let go.
func (c *handlerContext) finish() { c.Cancel(context.Canceled) }
