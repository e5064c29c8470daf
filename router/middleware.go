package router

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/babelpool/babelpool/delivery"
)

// Logging logs each run of a handler in one line: id, URN, queue, delivery number, duration and outcome, and the error
// if there is one. Success is logged at Info, everything else at Warn. The body never is; what an error says is the
// handler's own. A nil logger is slog.Default().
//
// The outcome is what the handler answered: ok, failed, retry after, dead letter, postponed, panicked; "did not return" where a
// panic or runtime.Goexit passes through, see Recovery. What becomes of the message then is the pool's to decide, and
// may be nothing at all, when its lease was lost meanwhile.
func Logging(logger *slog.Logger) Middleware {
	return func(next delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) (err error) {
			log := logger
			if log == nil {
				log = slog.Default() // as it is now: a program may set its own after its handlers
			}
			began, returned := time.Now(), false
			defer func() { logRun(ctx, log, d, time.Since(began), returned, err) }()
			err = next.Handle(ctx, d)
			returned = true
			return err
		})
	}
}

func logRun(ctx context.Context, log *slog.Logger, d *delivery.Delivery, took time.Duration, returned bool, err error) {
	level, outcome := slog.LevelWarn, "did not return"
	if returned {
		if outcome = outcomeOf(err); err == nil {
			level = slog.LevelInfo
		}
	}
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("id", short(d.Meta.ID, mostName)), slog.String("urn", short(d.URN, mostName)), slog.String("queue", d.Queue),
		slog.Int64("delivery", d.Number), slog.Duration("duration", took), slog.String("outcome", outcome),
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", brief(err)))
	}
	log.LogAttrs(ctx, level, "handled", attrs...)
}

// outcomeOf names what a handler answered.
func outcomeOf(err error) string {
	var dead *delivery.DeadLetterError
	var retry *delivery.RetryError
	var put *delivery.PostponeError
	switch {
	case err == nil:
		return "ok"
	case crashed(err):
		return "panicked"
	case errors.As(err, &dead):
		return "dead letter"
	case errors.As(err, &put):
		return "postponed"
	case errors.As(err, &retry):
		return "retry after"
	}
	return "failed"
}

// Recovery turns a panic of what is inside it into a *PanicError, so that middleware around it sees an error. The pool
// itself survives a panic in any case, and treats it the same. runtime.Goexit passes through.
func Recovery() Middleware {
	return func(next delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error { return call(ctx, next, d) })
	}
}

// Timeout ends a handler's context after d, with the cause pool.ErrHandlerTimeout, where the pool's HandlerTimeout would
// end it later. It ends the context alone: a handler that does not look at it goes on, and what it returns counts. d
// that is not above 0 is no limit.
func Timeout(d time.Duration) Middleware {
	return func(next delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(ctx context.Context, m *delivery.Delivery) error { return runWithin(ctx, d, next, m) })
	}
}

// Timeouts is Timeout with a time for each URN. URNs that are not among them have the time of "", or none.
func Timeouts(byURN map[string]time.Duration) Middleware {
	byURN = maps.Clone(byURN)
	return func(next delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(ctx context.Context, m *delivery.Delivery) error {
			d, ok := byURN[m.URN]
			if !ok {
				d = byURN[""]
			}
			return runWithin(ctx, d, next, m)
		})
	}
}

// runWithin runs a handler under a context that ends after d. It is of the same kind as the one a handler gets from the
// pool: no timer runs before somebody waits for it.
func runWithin(parent context.Context, d time.Duration, next delivery.Handler, m *delivery.Delivery) error {
	if d <= 0 {
		return next.Handle(parent, m)
	}
	at := time.Now().Add(d)
	if until, ok := parent.Deadline(); ok && until.Before(at) {
		return next.Handle(parent, m)
	}
	ctx := &handlerContext{parent: parent, deadline: at}
	defer ctx.finish()
	return next.Handle(ctx, m)
}
