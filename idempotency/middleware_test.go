package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/idempotency"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/router"
)

// TestOutcomes handles a message twice. What ended well is not run again; everything else is.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		handler delivery.HandlerFunc
		runs    int
		ends    string // "" = nil
	}{
		{"nil", func(context.Context, *delivery.Delivery) error { return nil }, 1, ""},
		{"an error", func(context.Context, *delivery.Delivery) error { return errBoom }, 2, "boom"},
		{"retry after", func(context.Context, *delivery.Delivery) error { return delivery.RetryAfter(0, nil) }, 2, "retry after 0s"},
		{"dead letter", func(context.Context, *delivery.Delivery) error { return delivery.DeadLetter(errBoom) }, 2, "dead-letter: boom"},
		{"unknown URN", func(context.Context, *delivery.Delivery) error { return router.ErrUnknownURN }, 2, router.ErrUnknownURN.Error()},
		{"panic", func(context.Context, *delivery.Delivery) error { panic(errBoom) }, 2, "panic: boom"},
		{"goexit", func(context.Context, *delivery.Delivery) error { runtime.Goexit(); return nil }, 2, "goexit"},
	} {
		for _, claims := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, claims %t", tc.name, claims), func(t *testing.T) {
				t.Parallel()
				s, runs := newStore(), 0
				cfg := idempotency.Config{Store: s}
				if claims {
					cfg.Claims = s
				}
				h, logs := wrap(cfg, func(ctx context.Context, d *delivery.Delivery) error {
					if runs++; claims && s.holder("x") == "" {
						t.Error("runs without the claim")
					}
					return tc.handler(ctx, d)
				})
				first, second := end(h, "x"), end(h, "x")
				if runs != tc.runs || first != tc.ends || second != tc.ends {
					t.Errorf("%d runs, ended with %q and %q", runs, first, second)
				}
				if s.holder("x") != "" {
					t.Error("the claim is still there")
				}
				logs.Want(t)
			})
		}
	}
}

// end runs a handler on a goroutine of its own and tells how it ended: "" is nil.
func end(h delivery.Handler, id string) (how string) {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		how = "goexit"
		defer func() {
			if v := recover(); v != nil {
				how = fmt.Sprint("panic: ", v)
			}
		}()
		err := h.Handle(context.Background(), message(id))
		if how = ""; err != nil {
			how = err.Error()
		}
	}()
	wg.Wait()
	return how
}

// The key is the id verbatim, whatever else of two messages is alike or not.
func TestIDs(t *testing.T) {
	t.Parallel()
	s, ran := newStore(), []string{}
	h, _ := wrap(idempotency.Config{Store: s, Claims: s}, func(_ context.Context, d *delivery.Delivery) error {
		ran = append(ran, d.Meta.ID)
		return nil
	})
	for _, id := range []string{"a", "A", " a", "", "", "a", "A"} {
		if err := h.Handle(t.Context(), message(id)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a", "A", " a", "", ""}, ran); diff != "" {
		t.Error(diff)
	}
}

func TestFailingLookUp(t *testing.T) {
	t.Parallel()
	s := newStore()
	h, logs := wrap(idempotency.Config{Store: s, Claims: s}, func(context.Context, *delivery.Delivery) error {
		t.Error("it ran")
		return nil
	})
	s.set("seen", errBoom)
	if err := h.Handle(t.Context(), message("x")); !errors.Is(err, idempotency.ErrLookUp) || !errors.Is(err, errBoom) {
		t.Errorf("got %v", err)
	}
	if s.holder("x") != "" {
		t.Error("the claim is still there")
	}
	logs.Want(t)
}

// A handled message is acked whatever becomes of the note: it fails, panics, or takes for ever. The log says so once a
// minute.
func TestFailingRemember(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, runs := newStore(), 0
		h, logs := wrap(idempotency.Config{Store: s}, func(context.Context, *delivery.Delivery) error {
			runs++
			return nil
		})
		s.set("remember", errBoom)
		long := strings.Repeat("ä", 1000)
		for range 3 {
			if err := h.Handle(t.Context(), message(long)); err != nil {
				t.Errorf("got %v", err)
			}
		}
		logs.Want(t, "suppressed=0")
		time.Sleep(time.Minute)
		s.panics = true
		if err := h.Handle(t.Context(), message("x")); err != nil {
			t.Errorf("got %v", err)
		}
		logs.Want(t, "suppressed=0", "suppressed=2")
		if runs != 4 {
			t.Errorf("%d runs", runs)
		}
		if lines := logs.With("id=x", "urn=urn:babel:a", "no room"); len(lines) != 1 {
			t.Errorf("no line names the message: %q", logs.Lines())
		}
		if line := logs.Lines()[0]; len(line) > 1000 || !strings.Contains(line, "boom") {
			t.Errorf("logged %s", line)
		}
	})
}

// The note is made although the handler's context has ended: it has succeeded. A store that does not answer holds the
// message for a bounded time.
func TestRememberOutlivesTheHandler(t *testing.T) {
	t.Parallel()
	s := newStore()
	ctx, cancel := context.WithCancel(t.Context())
	h, _ := wrap(idempotency.Config{Store: s, Claims: s}, func(context.Context, *delivery.Delivery) error {
		cancel()
		return nil
	})
	if err := h.Handle(ctx, message("x")); err != nil {
		t.Fatal(err)
	}
	if seen, err := s.memory.Seen(t.Context(), "x"); !seen || err != nil {
		t.Errorf("seen %t, %v", seen, err)
	}
	if s.holder("x") != "" {
		t.Error("the claim is still there")
	}
	synctest.Test(t, func(t *testing.T) {
		h, logs := wrap(idempotency.Config{Store: silent{}}, func(context.Context, *delivery.Delivery) error { return nil })
		began := time.Now()
		if err := h.Handle(t.Context(), message("x")); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		logs.Want(t, "deadline exceeded")
	})
}

// silent is a store that answers nobody who comes to remember.
type silent struct{ idempotency.Store }

func (silent) Seen(context.Context, string) (bool, error) { return false, nil }

func (silent) Remember(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }

// What a message costs a store.
func TestCalls(t *testing.T) {
	t.Parallel()
	for claims, want := range map[bool][]string{
		false: {"seen", "remember", "seen"},
		true:  {"claim", "seen", "remember", "release", "claim", "seen", "release"},
	} {
		s := newStore()
		cfg := idempotency.Config{Store: s}
		if claims {
			cfg.Claims = s
		}
		h, _ := wrap(cfg, func(context.Context, *delivery.Delivery) error { return nil })
		for range 2 {
			if err := h.Handle(t.Context(), message("x")); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, s.made()); diff != "" {
			t.Errorf("claims %t: %s", claims, diff)
		}
	}
}

func TestMistakesInTheConfig(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"no store":        func() { idempotency.Middleware(idempotency.Config{}) },
		"negative expiry": func() { idempotency.Middleware(idempotency.Config{Store: newStore(), ClaimExpiry: -1}) },
		"negative delay":  func() { idempotency.Middleware(idempotency.Config{Store: newStore(), ClaimDelay: -1}) },
		"negative most":   func() { idempotency.NewMemory(idempotency.MemoryConfig{Most: -1}) },
		"negative TTL":    func() { idempotency.NewMemory(idempotency.MemoryConfig{TTL: -1}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
	_, err := idempotency.NewRedis(idempotency.RedisConfig{TTL: -1})
	if !errors.Is(err, idempotency.ErrConfig) || !strings.Contains(err.Error(), "Client") || !strings.Contains(err.Error(), "TTL") {
		t.Errorf("got %v", err)
	}
	if _, err := idempotency.NewRedis(idempotency.RedisConfig{Client: testredis.Client(t, "localhost:1")}); err != nil {
		t.Error(err)
	}
}
