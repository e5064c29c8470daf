package limit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
)

// ErrLimited is the reason of the delivery.PostponeError with which a message over its limit is put off.
var ErrLimited = errors.New("limit: it is not the message's turn")

// Defaults of the options.
const (
	DefaultMaxWait  = time.Second
	DefaultMaxDelay = 5 * time.Minute
)

// shortestDelay is how long a message is put off at least: delays are whole seconds (Z6).
const shortestDelay = time.Second

// Option changes how a limit treats the messages beyond it.
type Option func(*options)

type options struct{ maxWait, maxDelay time.Duration }

// MaxWait is how long a message may wait in its worker. Defaults to a second; 0 puts it off at once.
func MaxWait(d time.Duration) Option { return func(o *options) { o.maxWait = d } }

// MaxDelay is how long a message is put off at most by Rate, however many are before it. What has not its turn then is put
// off again: that is a call to Redis for each, so short ones are for short queues. Defaults to 5 minutes, at least a second.
func MaxDelay(d time.Duration) Option { return func(o *options) { o.maxDelay = d } }

func chosen(opts []Option) options {
	o := options{DefaultMaxWait, DefaultMaxDelay}
	for _, opt := range opts {
		opt(&o)
	}
	if o.maxWait < 0 || o.maxDelay < shortestDelay {
		panic(fmt.Sprintf("limit: MaxWait is %s, of at least 0, and MaxDelay %s, of at least %s", o.maxWait, o.maxDelay, shortestDelay))
	}
	return o
}

// Concurrency lets n handlers run at the same time. Those that wait get their places in the order they came. It panics when n
// is less than 1.
func Concurrency(n int, opts ...Option) router.Middleware {
	if n < 1 {
		panic(fmt.Sprintf("limit: Concurrency is %d, of at least 1", n))
	}
	o, places := chosen(opts), semaphore.NewWeighted(int64(n))
	return func(next delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
			if !places.TryAcquire(1) && !wait(ctx, places, o.maxWait) {
				return delivery.Postpone(shortestDelay, ErrLimited)
			}
			defer places.Release(1) // also when the handler panics, or ends its goroutine
			return next.Handle(ctx, d)
		})
	}
}

// wait waits for a place, as long as the handler's context lets it.
func wait(ctx context.Context, places *semaphore.Weighted, most time.Duration) bool {
	if most == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return places.Acquire(ctx, 1) == nil
}

// ByURN applies a limit to each URN; those that are not named run without one. The key "" is for all of these together.
func ByURN(limits map[string]router.Middleware) router.Middleware {
	limits = maps.Clone(limits)
	return func(next delivery.Handler) delivery.Handler {
		limited := make(map[string]delivery.Handler, len(limits))
		for urn, limit := range limits {
			limited[urn] = limit(next)
		}
		return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
			h, ok := limited[d.URN]
			if !ok {
				h, ok = limited[""]
			}
			if !ok {
				h = next
			}
			return h.Handle(ctx, d)
		})
	}
}
