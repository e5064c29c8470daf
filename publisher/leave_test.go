package publisher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestGroupLeaderLeaves: those who had joined it are sent by another, behind the command that is away, and
// those who leave after it are not.
func TestGroupLeaderLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{hold: make(chan struct{})}
		g := newGroup(s.send)
		first := publishAll(g, t.Context(), "a")
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			leader := publishAll(g, ctx, "leader")
			followers := publishAll(g, t.Context(), "b", "c")
			cancel()
			if err := <-leader[0]; !errors.Is(err, ErrNotSent) || !errors.Is(err, context.Canceled) {
				t.Errorf("the leader: %v, want ErrNotSent and the cause", err)
			}
			first = append(first, followers...)
			synctest.Wait()
			if len(s.commands) != 1 {
				t.Fatalf("commands %q while one is away", s.commands)
			}
		}
		close(s.hold)
		for i, ch := range first {
			if err := <-ch; err != nil {
				t.Errorf("publish %d: %v", i, err)
			}
		}
		slices.Sort(s.commands[1])
		if got := s.commands[1]; len(s.commands) != 2 || !slices.Equal(got, []string{"b", "b", "b", "c", "c", "c"}) {
			t.Errorf("commands %q", s.commands)
		}
	})
}

// TestGroupLeaderOfAFullCommandLeaves: the command behind it does not overtake the one before it.
func TestGroupLeaderOfAFullCommandLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{hold: make(chan struct{})}
		g := newGroup(s.send)
		first := publishAll(g, t.Context(), "a")
		ctx, cancel := context.WithCancel(t.Context())
		leader := publishAll(g, ctx, "leader")
		large := publishAll(g, t.Context(), strings.Repeat("x", chunkBytes), strings.Repeat("y", chunkBytes))
		cancel()
		synctest.Wait()
		if err := <-leader[0]; !errors.Is(err, ErrNotSent) || len(s.commands) != 1 {
			t.Fatalf("the leader: %v; %d commands, want the first alone", err, len(s.commands))
		}
		for n := 2; n <= 3; n++ {
			s.hold <- struct{}{}
			synctest.Wait()
			if len(s.commands) != n {
				t.Errorf("%d commands, want %d, one at a time", len(s.commands), n)
			}
		}
		close(s.hold)
		if err := errors.Join(<-first[0], <-large[0], <-large[1]); err != nil {
			t.Error(err)
		}
	})
}

// TestGroupForgetsThoseWhoComeAndGo: while a server is silent, publishers that give up leave nothing behind.
func TestGroupForgetsThoseWhoComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{hold: make(chan struct{})}
		g := newGroup(s.send)
		first := publishAll(g, t.Context(), "a")
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := g.publish(ctx, "gone"); !errors.Is(err, ErrNotSent) {
				t.Errorf("%v, want ErrNotSent", err)
			}
			cancel()
		}
		chain := 0
		for c := g.last; c != nil; c = c.before {
			chain++
		}
		if chain > 2 {
			t.Errorf("%d commands are remembered", chain)
		}
		close(s.hold)
		if err := errors.Join(<-first[0], g.publish(t.Context(), "b")); err != nil {
			t.Error(err)
		}
		if want := [][]string{{"a"}, {"b"}}; !slices.EqualFunc(s.commands, want, slices.Equal) {
			t.Errorf("commands %q, want %q", s.commands, want)
		}
	})
}

// TestGroupUnderCancellation: whatever leaves and fails, a message is sent once when its publisher got nil or
// the command's error, else never, and commands never overlap.
func TestGroupUnderCancellation(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sent, failed := map[string]int{}, map[string]bool{}
	var away sync.Mutex
	g := newGroup(func(_ context.Context, bodies ...string) error {
		if !away.TryLock() {
			t.Error("two commands are away")
		} else {
			defer away.Unlock()
		}
		mu.Lock()
		defer mu.Unlock()
		fail := rand.IntN(8) == 0
		for _, body := range bodies {
			sent[body]++
			failed[body] = fail
		}
		if fail {
			return ErrMayBeStored
		}
		return nil
	})
	const routines, each = 32, 300
	var wg sync.WaitGroup
	for r := range routines {
		wg.Go(func() {
			for i := range each {
				body := fmt.Sprint(r, "-", i)
				ctx, cancel := context.WithCancel(t.Context())
				wg.Go(cancel)
				err := g.publish(ctx, body)
				cancel()
				mu.Lock()
				times, fail := sent[body], failed[body]
				mu.Unlock()
				want := map[bool]int{true: 0, false: 1}[errors.Is(err, ErrNotSent)]
				if times != want || errors.Is(err, ErrMayBeStored) != fail {
					t.Errorf("%s: %v, but it was sent %d times (failed: %t)", body, err, times, fail)
				}
			}
		})
	}
	wg.Wait()
}

// TestGroupCompany: a command knows whether it was shared, by which the next leader decides whether to let
// others run first. It remembers nothing else.
func TestGroupCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{hold: make(chan struct{})}
		g := newGroup(s.send)
		done := publishAll(g, t.Context(), "a", "b", "c")
		close(s.hold)
		for _, ch := range done {
			if err := <-ch; err != nil {
				t.Error(err)
			}
		}
		if !g.last.shared {
			t.Error("a command of two does not count as shared")
		}
		for range 2 {
			if err := g.publish(t.Context(), "d"); err != nil {
				t.Error(err)
			}
		}
		if g.last.shared || g.last.before != nil {
			t.Errorf("a lone publish counts as shared (%t), or holds on to the one before", g.last.shared)
		}
	})
}
