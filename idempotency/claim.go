package idempotency

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/babelpool/babelpool/delivery"
)

// claimed is once under a claim. The look at the store comes after the claim: whoever had it before has made its note, or
// failed.
func (g *guard) claimed(ctx context.Context, next delivery.Handler, d *delivery.Delivery) error {
	token := rand.Text()
	held, err := g.Claims.Claim(ctx, d.Meta.ID, token, g.ClaimExpiry)
	if err == nil && !held {
		return busy(g.ClaimDelay)
	}
	// Also after an error, whose command may have been carried out: the claim would keep the message's retry away. Deferred
	// calls run when a handler panics or ends its goroutine, too.
	defer g.release(ctx, d, token)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrClaim, err)
	}
	run, cancel := context.WithCancelCause(ctx)
	var renewal conc.WaitGroup
	defer renewal.Wait()
	// A handler that goes on after its context has ended still has its claim.
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	renewal.Go(func() { g.renew(over, d, token, cancel) })
	defer cancel(nil)
	return g.once(run, next, d)
}

// busy is the verdict on a message that another worker is handling: it must come again, since the other may fail. Nothing
// of it has failed.
func busy(delay time.Duration) error { return delivery.Postpone(delay, ErrClaimed) }

// renew extends a claim until ctx ends. As with leases, it is lost only when another has it: one that ran out, while Redis
// was away, is taken anew.
func (g *guard) renew(ctx context.Context, d *delivery.Delivery, token string, lost context.CancelCauseFunc) {
	every := g.ClaimExpiry / 3
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		call, cancel := context.WithTimeout(ctx, max(every, time.Second))
		held, err := g.Claims.Claim(call, d.Meta.ID, token, g.ClaimExpiry)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			g.unclaimed.tell(g.Logger, "a claim could not be renewed; its message may be handled a second time", d, err)
		case !held:
			lost(ErrClaimLost)
			return
		}
		timer.Reset(every)
	}
}

// release ends a claim. One that cannot be ended runs out.
func (g *guard) release(ctx context.Context, d *delivery.Delivery, token string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterTimeout)
	defer cancel()
	if err := g.Claims.Release(ctx, d.Meta.ID, token); err != nil {
		g.unclaimed.tell(g.Logger, "a claim could not be ended; it runs out by itself", d, err)
	}
}
