package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
)

// handle runs a handler within middleware, the first outermost, on a delivery of the usual kind.
func handle(t *testing.T, ctx context.Context, h delivery.HandlerFunc, middleware ...Middleware) error { //nolint:revive // as helpers have it
	t.Helper()
	m := NewMux()
	m.Use(middleware...)
	m.HandleFunc(urn, h)
	d := withData(`{"card":"secret-4111"}`)
	d.Meta.ID, d.Queue, d.Number = "m-1", "orders", 2
	return m.Handle(ctx, d)
}

func TestLogging(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"success":     {nil, `level=INFO msg=handled id=m-1 urn=urn:babel:orders:created queue=orders delivery=2 duration=1s outcome=ok`},
		"failure":     {errBoom, `level=WARN msg=handled id=m-1 urn=urn:babel:orders:created queue=orders delivery=2 duration=1s outcome=failed error=boom`},
		"retry after": {delivery.RetryAfter(second, errBoom), `outcome="retry after" error="retry after 1s: boom"`},
		"dead letter": {fmt.Errorf("x: %w", delivery.DeadLetter(errBoom)), `outcome="dead letter" error="x: dead-letter: boom"`},
		"panic":       {&PanicError{Value: "kaboom"}, `outcome=panicked error="panic: kaboom"`},
		"a long text": {errors.New(strings.Repeat("x", 1<<20)), "outcome=failed error=xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var kept logs
				err := handle(t, t.Context(), func(ctx context.Context, _ *delivery.Delivery) error {
					wait, stop := context.WithTimeout(ctx, second)
					defer stop()
					<-wait.Done()
					return tc.err
				}, Logging(slog.New(&kept)))
				if !errors.Is(err, tc.err) {
					t.Errorf("returned %v", err)
				}
				kept.Want(t, tc.want)
				if line := kept.Lines()[0]; strings.Contains(line, "4111") || len(line) > 4096 {
					t.Errorf("logged %d bytes: %.200s", len(line), line)
				}
			})
		})
	}
}

// TestLoggingOfWhatDoesNotReturn: a panic or Goexit that passes through is logged, and passes on.
func TestLoggingOfWhatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"panic": func() { panic(errBoom) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kept logs
			returned, ended := false, make(chan any, 1)
			go func() {
				defer func() { ended <- recover() }()
				_ = handle(t, t.Context(), func(context.Context, *delivery.Delivery) error { end(); return nil }, Logging(slog.New(&kept)))
				returned = true
			}()
			if value := <-ended; returned || name == "panic" && value == nil {
				t.Errorf("returned %v, panicked with %v", returned, value)
			}
			kept.Want(t, `outcome="did not return"`)
		})
	}
}

func TestLoggingAtALevelThatIsOff(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := handle(t, t.Context(), func(context.Context, *delivery.Delivery) error { return nil }, Logging(log)); err != nil {
		t.Error(err)
	}
	if text.Len() > 0 {
		t.Errorf("logged %s", text.String())
	}
}

func TestRecovery(t *testing.T) {
	t.Parallel()
	err := handle(t, t.Context(), panicsWith(errBoom), Recovery())
	var p *PanicError
	if !errors.As(err, &p) || !errors.Is(err, errBoom) || !strings.Contains(string(p.Stack), "panicsWith") {
		t.Errorf("got %v", err)
	}
	if err := handle(t, t.Context(), returns(errBoom), Recovery()); !errors.Is(err, errBoom) || errors.As(err, &p) {
		t.Errorf("an error became %v", err)
	}
}

// TestTimeouts: the shorter of the two limits counts, each URN has its own, and the cause is the one the pool's own
// limit has.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	const long = time.Hour
	for name, tc := range map[string]struct {
		outer time.Duration // of the context that the pool gives; 0 = none
		mw    Middleware
		want  time.Duration // when the context ends; 0 = never
	}{
		"one for all":        {long, Timeout(time.Second), time.Second},
		"the pool's is less": {time.Minute, Timeout(long), time.Minute},
		"no limit":           {time.Minute, Timeout(0), time.Minute},
		"below zero":         {0, Timeout(-1), 0},
		"without the pool's": {0, Timeout(time.Second), time.Second},
		"of the URN":         {long, Timeouts(map[string]time.Duration{urn: time.Second, "": time.Minute}), time.Second},
		"of the others":      {long, Timeouts(map[string]time.Duration{"urn:other": time.Second, "": time.Minute}), time.Minute},
		"of none":            {long, Timeouts(map[string]time.Duration{"urn:other": time.Second}), long},
		"none for this one":  {long, Timeouts(map[string]time.Duration{urn: 0, "": time.Minute}), long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				outer := &handlerContext{parent: t.Context()}
				if tc.outer > 0 {
					outer.deadline = time.Now().Add(tc.outer)
				}
				defer outer.finish()
				began := time.Now()
				_ = handle(t, outer, func(ctx context.Context, _ *delivery.Delivery) error {
					at, ok := ctx.Deadline()
					if ok != (tc.want > 0) || ok && at.Sub(began) != tc.want {
						t.Errorf("the deadline is %v, %v", at.Sub(began), ok)
					}
					if tc.want == 0 {
						return nil
					}
					<-ctx.Done()
					if got := time.Since(began); got != tc.want || !errors.Is(context.Cause(ctx), flow.ErrHandlerTimeout) {
						t.Errorf("ended after %v by %v", got, context.Cause(ctx))
					}
					return nil
				}, tc.mw)
			})
		})
	}
}

// TestTimeoutPassesOnOtherEnds: a lost lease or a hard stop reaches a handler within a timeout, and its values do.
func TestTimeoutPassesOnOtherEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		outer := &handlerContext{parent: context.WithValue(t.Context(), key{}, "v")}
		_ = handle(t, outer, func(ctx context.Context, _ *delivery.Delivery) error {
			outer.Cancel(flow.ErrLeaseLost)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), flow.ErrLeaseLost) || ctx.Value(key{}) != "v" {
				t.Errorf("cause %v, value %v", context.Cause(ctx), ctx.Value(key{}))
			}
			return nil
		}, Timeout(time.Hour))
	})
}

// TestMiddlewareInTheDocumentedOrder: Logging sees what Recovery makes of a panic, and the time spent in between does
// not count against the handler's own.
func TestMiddlewareInTheDocumentedOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var kept logs
		var trace []string
		limit := func(next delivery.Handler) delivery.Handler { // waits, as a limiter does
			return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
				wait, stop := context.WithTimeout(ctx, time.Minute)
				defer stop()
				<-wait.Done()
				trace = append(trace, "limit")
				return next.Handle(ctx, d)
			})
		}
		err := handle(t, t.Context(), func(ctx context.Context, _ *delivery.Delivery) error {
			trace = append(trace, "handler")
			<-ctx.Done()
			panic("out of time")
		}, Logging(slog.New(&kept)), Recovery(), limit, Timeout(time.Second))
		if diff := cmp.Diff([]string{"limit", "handler"}, trace); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if p := new(PanicError); !errors.As(err, &p) {
			t.Errorf("got %v", err)
		}
		kept.Want(t, `duration=1m1s outcome=panicked error="panic: out of time"`)
	})
}

// BenchmarkMiddleware is what each costs a handler that looks at nothing.
func BenchmarkMiddleware(b *testing.B) {
	off := slog.New(slog.DiscardHandler)
	for name, mw := range map[string]Middleware{
		"none": Timeout(0), "timeout": Timeout(time.Minute), "recovery": Recovery(), "logging off": Logging(off),
	} {
		b.Run(name, func(b *testing.B) {
			h := mw(returns(nil))
			d := withData("{}")
			ctx := &handlerContext{parent: context.Background(), deadline: time.Now().Add(time.Hour)}
			b.ReportAllocs()
			for b.Loop() {
				_ = h.Handle(ctx, d)
			}
		})
	}
}
