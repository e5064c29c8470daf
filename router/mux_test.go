package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
)

func of(urn string) *delivery.Delivery {
	return &delivery.Delivery{Envelope: envelope.Envelope{URN: urn}}
}

func TestMuxDispatchesByURN(t *testing.T) {
	t.Parallel()
	m, errA := NewMux(), errors.New("a")
	m.HandleFunc("urn:a", func(_ context.Context, d *delivery.Delivery) error {
		if d.URN != "urn:a" {
			t.Errorf("got %q", d.URN)
		}
		return errA
	})
	m.Register("urn:b", delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return nil }))
	for urn, want := range map[string]error{
		"urn:a": errA, "urn:b": nil, "urn:c": ErrUnknownURN, "": ErrUnknownURN, "urn:A": ErrUnknownURN, "urn:a ": ErrUnknownURN,
	} {
		if err := m.Handle(t.Context(), of(urn)); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", urn, err, want)
		}
	}
}

// panics runs f and returns what it panicked with.
func panics(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

func TestMuxRefusesMistakes(t *testing.T) {
	t.Parallel()
	nothing := func(context.Context, *delivery.Delivery) error { return nil }
	for name, mistake := range map[string]func(m *Mux){
		`two handlers for the URN "urn:a"`: func(m *Mux) { m.HandleFunc("urn:a", nothing) },
		"needs a URN and a handler":        func(m *Mux) { m.HandleFunc("", nothing) },
		"needs a URN and a handler ":       func(m *Mux) { m.Register("urn:b", nil) },
		"HandleFunc needs a function":      func(m *Mux) { m.HandleFunc("urn:b", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, calls := NewMux(), 0
			m.HandleFunc("urn:a", func(context.Context, *delivery.Delivery) error { calls++; return nil })
			text := fmt.Sprint(panics(func() { mistake(m) }))
			if !strings.HasPrefix(text, "router: ") || !strings.Contains(text, strings.TrimSpace(name)) {
				t.Errorf("panicked with %s", text)
			}
			// The Mux goes on with what it had, its lock free.
			m.HandleFunc("urn:c", nothing)
			if err := m.Handle(t.Context(), of("urn:a")); err != nil || calls != 1 {
				t.Errorf("the first handler ran %d times: %v", calls, err)
			}
		})
	}
}

func TestMiddlewareOrder(t *testing.T) {
	t.Parallel()
	m, trace := NewMux(), []string(nil)
	layer := func(name string) Middleware {
		return func(next delivery.Handler) delivery.Handler {
			return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
				trace = append(trace, name+" in")
				defer func() { trace = append(trace, name+" out") }()
				return next.Handle(ctx, d)
			})
		}
	}
	run := func(urn string) []string {
		trace = nil
		if err := m.Handle(t.Context(), of(urn)); err != nil && !errors.Is(err, ErrUnknownURN) {
			t.Error(err)
		}
		return trace
	}
	handler := func(context.Context, *delivery.Delivery) error { trace = append(trace, "handler"); return nil }

	m.HandleFunc("urn:early", handler)
	m.Use(layer("1"), layer("2"))
	m.HandleFunc("urn:late", handler)
	want := []string{"1 in", "2 in", "handler", "2 out", "1 out"}
	for _, urn := range []string{"urn:early", "urn:late"} {
		if diff := cmp.Diff(want, run(urn)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", urn, diff)
		}
	}
	m.Use(layer("3")) // added later, so further inside; no handler is wrapped in 1 and 2 again
	want = []string{"1 in", "2 in", "3 in", "handler", "3 out", "2 out", "1 out"}
	for _, urn := range []string{"urn:early", "urn:late"} {
		if diff := cmp.Diff(want, run(urn)); diff != "" {
			t.Errorf("%s after a late Use (-want +got):\n%s", urn, diff)
		}
	}
	if got := run("urn:unknown"); got != nil {
		t.Errorf("middleware saw a message without a handler: %v", got)
	}
}

func TestMiddlewareMayAnswer(t *testing.T) {
	t.Parallel()
	m, refused := NewMux(), errors.New("refused")
	m.Use(func(delivery.Handler) delivery.Handler {
		return delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return refused })
	})
	m.HandleFunc("urn:a", func(context.Context, *delivery.Delivery) error { t.Error("handler ran"); return nil })
	if err := m.Handle(t.Context(), of("urn:a")); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

// TestMuxRegistersWhileItDispatches lets the race detector look, and loses no registration.
func TestMuxRegistersWhileItDispatches(t *testing.T) {
	t.Parallel()
	m := NewMux()
	m.HandleFunc("urn:0", func(context.Context, *delivery.Delivery) error { return nil })
	pass := func(next delivery.Handler) delivery.Handler { return next }
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 50 {
				m.HandleFunc(fmt.Sprintf("urn:%d:%d", g, i), func(context.Context, *delivery.Delivery) error { return nil })
				if i%10 == 0 {
					m.Use(pass)
				}
			}
		})
		all.Go(func() {
			for range 500 {
				if err := m.Handle(t.Context(), of("urn:0")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for g := range 4 {
		for i := range 50 {
			if err := m.Handle(t.Context(), of(fmt.Sprintf("urn:%d:%d", g, i))); err != nil {
				t.Fatalf("urn:%d:%d: %v", g, i, err)
			}
		}
	}
}
