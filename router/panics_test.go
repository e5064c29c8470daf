package router

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// badEnds are the ways in which B20 lets every third handler end.
var badEnds = []struct {
	urn  string
	ends delivery.HandlerFunc
}{
	{"urn:string", panicsWith("kaboom")},
	{"urn:error", panicsWith(errBoom)},
	{"urn:map", func(context.Context, *delivery.Delivery) error {
		write := func(m map[string]int) { m["x"] = 1 }
		write(nil)
		return nil
	}},
	{"urn:goexit", exits},
	{"urn:deferred", func(context.Context, *delivery.Delivery) error {
		defer func() { panic("in a deferred function") }()
		return nil
	}},
	{"urn:twice", func(context.Context, *delivery.Delivery) error {
		defer func() { panic("again") }()
		panic("kaboom")
	}},
	{"urn:deferred-goexit", func(context.Context, *delivery.Delivery) error {
		defer runtime.Goexit()
		panic("kaboom")
	}},
	{"urn:middleware", returns(nil)},        // its middleware panics
	{"urn:on-error", returns(errBoom)},      // OnError panics
	{"urn:on-error-exit", returns(errBoom)}, // OnError exits
	{"urn:policy", returns(errBoom)},        // the backoff policy panics
	{"urn:nil-error", returns((*faultyError)(nil))},
	{"urn:unknown", nil}, // OnUnknownURN panics
}

// badPolicy has hooks that fail for the messages meant for them.
func badPolicy() Policy {
	return Policy{
		Delay: Delay{Policy: func(int64) float64 { panic("policy") }},
		OnError: func(_ context.Context, _ error, env envelope.Envelope, _ string) {
			switch env.URN {
			case "urn:on-error":
				panic("OnError")
			case "urn:on-error-exit":
				runtime.Goexit()
			}
		},
		OnUnknownURN: func(context.Context, error, envelope.Envelope, string) error { panic("OnUnknownURN") },
	}
}

func badMux() *Mux {
	m := NewMux()
	m.HandleFunc("urn:good", returns(nil))
	for _, bad := range badEnds {
		if bad.ends != nil {
			m.HandleFunc(bad.urn, bad.ends)
		}
	}
	m.Use(func(next delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
			if d.URN == "urn:middleware" {
				panic("middleware")
			}
			return next.Handle(ctx, d)
		})
	})
	return m
}

// TestBadEnds is B20: 1,000 messages of which every third ends badly. Each is settled once, and afterwards
// there are as many workers as before.
func TestBadEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const workers, messages = 8, 1000
		g := newRig(workers, badPolicy(), badMux(), layouts...)
		var running, most atomic.Int64
		release := make(chan struct{})
		for i := range g.cfg.Queues {
			mux, _ := g.cfg.Queues[i].Handler.(*Mux)
			if i == 0 { // both queues share it
				mux.HandleFunc("urn:block", func(context.Context, *delivery.Delivery) error {
					most.Store(max(most.Load(), running.Add(1)))
					defer running.Add(-1)
					<-release
					return nil
				})
			}
		}
		done := g.running(t.Context())

		byURN := map[*flow.Reservation]string{}
		for i := range messages {
			urn := "urn:good"
			if i%3 == 2 {
				urn = badEnds[i/3%len(badEnds)].urn
			}
			byURN[g.put(i%2, bodyOf(urn, 0, time.Now()))[0]] = urn
		}
		synctest.Wait()
		for queue, layout := range layouts {
			checkEnds(t, layout, g.settlements(queue), byURN, g.counted(queue))
		}
		if len(byURN) != 0 {
			t.Errorf("%d messages were not settled", len(byURN))
		}

		// Now more handlers than there are workers: exactly as many run as are configured.
		for i := range workers + 3 {
			g.put(i%2, bodyOf("urn:block", 0, time.Now()))
		}
		synctest.Wait()
		if n := running.Load(); n != workers || len(g.Running()) != workers {
			t.Errorf("%d handlers run (%d named), want %d", n, len(g.Running()), workers)
		}
		close(release)
		g.end()
		<-done
		if n := len(g.settlements(0)) + len(g.settlements(1)); n != workers+3 || most.Load() != workers {
			t.Errorf("%d settlements, %d at once", n, most.Load())
		}
	})
}

// checkEnds checks the settlements of one queue and takes them out of byURN.
func checkEnds(t *testing.T, layout flow.Layout, all []flow.Settlement, byURN map[*flow.Reservation]string, count map[string]int64) {
	t.Helper()
	want := map[string]int64{}
	for _, s := range all {
		urn, open := byURN[s.Reservation]
		if !open {
			t.Errorf("%s: %s settled twice", layout, s.Reservation)
		}
		delete(byURN, s.Reservation)
		want["Started"]++
		op := flow.Leave
		switch {
		case urn == "urn:good":
			op = flow.Ack
		case slices.Contains([]string{"urn:on-error", "urn:on-error-exit", "urn:policy"}, urn):
			want["Failed"]++
		default:
			want["Failed"]++
			want["Panics"]++
		}
		if urn == "urn:unknown" {
			want["UnknownURN"]++
		}
		if s.Op != op { // where the policy panics too, a failure is left to its lease
			t.Errorf("%s: %s ends with %s, want %s", layout, urn, s.Op, op)
		}
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("%s: counters (-want +got):\n%s", layout, diff)
	}
}

func TestPanicError(t *testing.T) {
	t.Parallel()
	err := call(t.Context(), panicsWith(errBoom), &delivery.Delivery{})
	var p *PanicError
	if !errors.As(err, &p) || !errors.Is(err, errBoom) || err.Error() != "panic: boom" || len(p.Stack) == 0 {
		t.Errorf("got %v with a stack of %d bytes", err, len(p.Stack))
	}
	err = guard(func() { panic(fmt.Sprint(1)) })
	if !errors.As(err, &p) || err.Error() != "panic: 1" || errors.Unwrap(err) != nil || len(p.Stack) == 0 {
		t.Errorf("got %v", err)
	}
	if err := guard(runtime.Goexit); !errors.Is(err, ErrExited) {
		t.Errorf("got %v", err)
	}
	if err := guard(func() {}); err != nil {
		t.Errorf("got %v", err)
	}
}
