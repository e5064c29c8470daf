package router

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
)

// TestHandlerContextEnds for the first reason there is, whether somebody waits already or looks only later.
func TestHandlerContextEnds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		end   func(c *handlerContext, stop context.CancelCauseFunc)
		err   error
		cause error
	}{
		{"lease lost", func(c *handlerContext, _ context.CancelCauseFunc) { c.Cancel(flow.ErrLeaseLost) }, context.Canceled, flow.ErrLeaseLost},
		{"time over", func(*handlerContext, context.CancelCauseFunc) { time.Sleep(time.Minute) }, context.DeadlineExceeded, flow.ErrHandlerTimeout},
		{"hard stop", func(_ *handlerContext, stop context.CancelCauseFunc) { stop(flow.ErrHardStop) }, context.Canceled, flow.ErrHardStop},
		{"the run is over", func(c *handlerContext, _ context.CancelCauseFunc) { c.finish() }, context.Canceled, context.Canceled},
		{"lost, then over", func(c *handlerContext, _ context.CancelCauseFunc) {
			c.Cancel(flow.ErrLeaseLost)
			c.finish()
		}, context.Canceled, flow.ErrLeaseLost},
	} {
		for _, looks := range []bool{true, false} { // before the end
			synctest.Test(t, func(t *testing.T) {
				parent, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				c := &handlerContext{parent: parent, deadline: time.Now().Add(time.Minute)}
				defer c.finish()
				var child context.Context
				ended := false
				if looks {
					if c.Err() != nil || context.Cause(c) != nil {
						t.Fatal("ended before anything happened")
					}
					var cancel context.CancelFunc
					child, cancel = context.WithCancel(c)
					defer cancel()
					context.AfterFunc(c, func() { ended = true })
				}
				tc.end(c, stop)
				synctest.Wait()
				if !errors.Is(c.Err(), tc.err) || !errors.Is(context.Cause(c), tc.cause) {
					t.Errorf("%s, looked at before: %t: %v because of %v", tc.name, looks, c.Err(), context.Cause(c))
				}
				<-c.Done()
				if looks && (!ended || !errors.Is(context.Cause(child), tc.cause)) {
					t.Errorf("%s: a child ended because of %v, a function after it ran: %t", tc.name, context.Cause(child), ended)
				}
			})
		}
	}
}

func TestHandlerContextHasItsParentsValues(t *testing.T) {
	t.Parallel()
	type key struct{}
	parent, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, 7), time.Hour)
	defer cancel()
	c := &handlerContext{parent: parent}
	defer c.finish()
	if c.Value(key{}) != 7 {
		t.Errorf("value %v", c.Value(key{}))
	}
	want, _ := parent.Deadline()
	if at, ok := c.Deadline(); !ok || !at.Equal(want) {
		t.Errorf("deadline %s, want the parent's", at)
	}
}

// TestFastHandlersCostNoContext: one that does not look at its context makes none.
func TestFastHandlersCostNoContext(t *testing.T) {
	t.Parallel()
	var seen *handlerContext
	g := newRig(1, Policy{HandlerTimeout: time.Minute}, delivery.HandlerFunc(func(ctx context.Context, _ *delivery.Delivery) error {
		seen, _ = ctx.(*handlerContext)
		return nil
	}), flow.Legacy)
	g.put(0, body(0))
	g.end()
	_ = g.Run(t.Context())
	if seen == nil || seen.real != nil {
		t.Errorf("got %v", seen)
	}
}

// TestContextsEndWithTheirRun, so that what a handler leaves running sees that nobody waits for it.
func TestContextsEndWithTheirRun(t *testing.T) {
	t.Parallel()
	for _, h := range []delivery.HandlerFunc{returns(nil), returns(errBoom), panicsWith(1), exits} {
		synctest.Test(t, func(t *testing.T) {
			var done <-chan struct{}
			g := newRig(1, Policy{}, delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
				done = ctx.Done()
				return h(ctx, d)
			}), flow.Legacy)
			g.put(0, body(0))
			g.end()
			_ = g.Run(t.Context())
			synctest.Wait()
			if !isClosed(done) {
				t.Error("the context outlives the run")
			}
		})
	}
}

// TestLostBetweenCheckAndStart: the scheduler may lose a reservation at any moment.
func TestLostBetweenCheckAndStart(t *testing.T) {
	t.Parallel()
	h := &runs{}
	g := one(h, Policy{}, true)
	r := reserved(0, flow.Legacy, body(0))
	q := &g.cfg.Queues[0]
	d, err := read(q, r)
	if err != nil {
		t.Fatal(err)
	}
	r.Lose()
	(&worker{rt: g.Router, ctx: t.Context()}).start(q, &job{reservation: r}, d, time.Now())
	if h.n != 0 {
		t.Error("the handler ran")
	}
	wantOps(t, g, "forget")
	wantCount(t, g, map[string]int64{"Lost": 1})
}

// TestHooksAreOptional: without them everything is settled as with them.
func TestHooksAreOptional(t *testing.T) {
	t.Parallel()
	g := newRig(1, Policy{}, returns(errBoom), flow.Legacy)
	g.cfg.Policy.OnError = nil
	g.put(0, body(0), "hello")
	g.Refused(t.Context(), 0, "hello")
	g.end()
	_ = g.Run(t.Context())
	wantOps(t, g, "leave", "dead-letter")
}

// TestAbandonWaitsForASendUnderWay: between the claim of a settlement and its sending there is nothing that
// could hang, so it is waited for.
func TestAbandonWaitsForASendUnderWay(t *testing.T) {
	t.Parallel()
	r := reserved(0, flow.Legacy, body(0))
	r.Settle()
	j := &job{reservation: r}
	abandoned := make(chan struct{})
	go func() { defer close(abandoned); j.abandon() }()
	stillWaits(t, abandoned)
	j.sent.Store(true)
	within(t, abandoned, "waits for ever")
	if r.State() != flow.Settled {
		t.Errorf("state %d", r.State())
	}
}

// TestAbandonWaitsForAForgetUnderWay: the pool closes the channel when all workers have ended or been abandoned,
// so none may be about to send then.
func TestAbandonWaitsForAForgetUnderWay(t *testing.T) {
	t.Parallel()
	g := newRig(1, Policy{}, returns(nil), flow.Legacy)
	q := &g.cfg.Queues[0]
	out := make(chan flow.Settlement) // without room, so that the send can be watched
	q.Out = out
	w := &worker{rt: g.Router, ctx: t.Context()}
	g.workers, g.alive = []*worker{w}, 1
	r := reserved(0, flow.Legacy, body(0))
	r.Lose()
	taken, sending, abandoned := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { defer close(taken); w.take(r) }()
	go func() { // nobody else has the lock
		defer close(sending)
		for q.Counters.Lost.Load() == 0 {
			runtime.Gosched()
		}
		for g.Router.mu.TryLock() {
			g.Router.mu.Unlock()
			runtime.Gosched()
		}
	}()
	within(t, sending, "the send is not guarded")
	go func() { defer close(abandoned); g.Abandon() }()
	stillWaits(t, abandoned)
	if s := <-out; s.Op != flow.Forget {
		t.Errorf("sent %s", s.Op)
	}
	within(t, abandoned, "Abandon does not return")
	within(t, taken, "the worker does not go on")
}

// stillWaits gives others many chances to close a channel too early.
func stillWaits(t *testing.T, done <-chan struct{}) {
	t.Helper()
	for range 1000 {
		runtime.Gosched()
		select {
		case <-done:
			t.Fatal("does not wait")
		default:
		}
	}
}
