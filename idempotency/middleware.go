package idempotency

import (
	"context"
	"fmt"
	"time"

	"github.com/sourcegraph/conc/panics"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
)

// afterTimeout bounds a call that is made after the handler, whose own context may have ended: a store that does not
// answer must not hold a handled message for longer.
const afterTimeout = 3 * time.Second

// guard is the middleware's state.
type guard struct {
	Config
	forgetful, unclaimed notice // Remember failed; a claim's Release or renewal did
}

// Middleware runs a handler once for each meta.id, as the package's documentation says. It panics when the config has no
// Store. Put it inside of what makes messages wait, and of what looks on.
func Middleware(cfg Config) router.Middleware {
	g := &guard{Config: cfg.filled()}
	return func(next delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
			switch {
			case d.Meta.ID == "":
				return next.Handle(ctx, d)
			case g.Claims != nil:
				return g.claimed(ctx, next, d)
			}
			return g.once(ctx, next, d)
		})
	}
}

// once runs the handler of a message that is not remembered.
func (g *guard) once(ctx context.Context, next delivery.Handler, d *delivery.Delivery) error {
	seen, err := g.Store.Seen(ctx, d.Meta.ID)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLookUp, err)
	}
	if seen {
		return nil
	}
	if err := next.Handle(ctx, d); err != nil {
		return err
	}
	g.remember(ctx, d)
	return nil
}

// remember notes a success. The message is acked whatever becomes of the note, also when a store panics: running a
// handler again that has succeeded is what the note is to prevent.
func (g *guard) remember(ctx context.Context, d *delivery.Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterTimeout)
	defer cancel()
	var err error
	if p := panics.Try(func() { err = g.Store.Remember(ctx, d.Meta.ID) }); p != nil {
		err = p.AsError()
	}
	if err != nil {
		g.forgetful.tell(g.Logger, "a handled message could not be remembered; it runs again if it comes again", d, err)
	}
}
