package limit

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
)

// Rate lets perSecond handlers start a second, and after a pause burst of them at once: a token bucket. It panics when
// perSecond is not above 0 or burst is less than 1.
func Rate(perSecond float64, burst int, opts ...Option) router.Middleware {
	if !(perSecond > 0) || math.IsInf(perSecond, 1) || burst < 1 {
		panic(fmt.Sprintf("limit: Rate is %v a second, of more than 0, with a burst of %d, of at least 1", perSecond, burst))
	}
	b := &bucket{
		options: chosen(opts),
		tokens:  rate.NewLimiter(rate.Limit(perSecond), burst),
		turns:   rate.NewLimiter(rate.Limit(perSecond), 1),
	}
	return func(next delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
			if delay := b.take(ctx); delay > 0 {
				return delivery.Postpone(delay, ErrLimited)
			}
			return next.Handle(ctx, d)
		})
	}
}

// bucket is the state of a Rate.
type bucket struct {
	options
	tokens *rate.Limiter // whoever starts takes one
	// Whoever is put off takes one of these, which say when its turn should be. Without them all that is put off would come
	// back together, to be put off again but for a few.
	turns *rate.Limiter
}

// take waits for a token, and is 0 when it has one. Otherwise it says how long to put the message off.
func (b *bucket) take(ctx context.Context) time.Duration {
	token := b.tokens.Reserve()
	wait := token.Delay()
	if wait == 0 {
		return 0
	}
	if wait <= b.maxWait && sleep(ctx, wait) {
		return 0
	}
	token.Cancel()
	turn := b.turns.Reserve()
	delay := turn.Delay()
	if delay > b.maxDelay {
		turn.Cancel()
		delay = b.maxDelay
	}
	return max(delay, shortestDelay)
}

// sleep is false when ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
