package publisher

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sender records commands; each is held until release is called, when there is one.
type sender struct {
	mu       sync.Mutex
	commands [][]string
	err      error
	hold     chan struct{} // nil: commands return at once
	ctxErr   []error       // of the contexts, as the commands ended
}

func (s *sender) send(ctx context.Context, bodies ...string) error {
	s.mu.Lock()
	s.commands = append(s.commands, slices.Clone(bodies))
	s.mu.Unlock()
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctxErr = append(s.ctxErr, ctx.Err())
	return s.err
}

// publishAll starts a publish per body, each queued before the next starts, and returns their errors' channel.
func publishAll(g *group, ctx context.Context, bodies ...string) []chan error { //nolint:revive // the group is the subject
	done := make([]chan error, len(bodies))
	for i, body := range bodies {
		done[i] = make(chan error, 1)
		go func() { done[i] <- g.publish(ctx, body) }()
		synctest.Wait()
	}
	return done
}

func TestGroupJoinsWhatComesWhileACommandIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{hold: make(chan struct{})}
		g := newGroup(s.send)
		done := publishAll(g, t.Context(), "a", "b", "c", "d")
		close(s.hold)
		for i, ch := range done {
			if err := <-ch; err != nil {
				t.Errorf("publish %d: %v", i, err)
			}
		}
		want := [][]string{{"a"}, {"b", "c", "d"}}
		if len(s.commands) != 2 || !slices.Equal(s.commands[0], want[0]) || !slices.Equal(s.commands[1], want[1]) {
			t.Errorf("commands %q, want %q", s.commands, want)
		}
		if err := g.publish(t.Context(), "e"); err != nil || len(s.commands) != 3 {
			t.Errorf("a lone publish after that: %v, %d commands; want its own", err, len(s.commands))
		}
	})
}

func TestGroupSharesAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{hold: make(chan struct{}), err: ErrMayBeStored}
		g := newGroup(s.send)
		done := publishAll(g, t.Context(), "a", "b", "c")
		close(s.hold)
		for i, ch := range done {
			if err := <-ch; !errors.Is(err, ErrMayBeStored) {
				t.Errorf("publish %d: %v, want the command's error", i, err)
			}
		}
	})
}

func TestGroupContextEndsTheWaitInTheQueueOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{hold: make(chan struct{})}
		g := newGroup(s.send)
		first := publishAll(g, t.Context(), "a")
		ctx, cancel := context.WithCancel(t.Context())
		gone := publishAll(g, ctx, "gone")
		leader := publishAll(g, ctx, "also gone")
		stays := publishAll(g, t.Context(), "stays")
		cancel()
		synctest.Wait()
		for _, ch := range []chan error{gone[0], leader[0]} {
			if err := <-ch; !errors.Is(err, ErrNotSent) || !errors.Is(err, context.Canceled) {
				t.Errorf("a publish whose context ended in the queue: %v, want ErrNotSent and the cause", err)
			}
		}
		close(s.hold)
		if err := errors.Join(<-first[0], <-stays[0]); err != nil {
			t.Error(err)
		}
		if got := strings.Join(slices.Concat(s.commands...), " "); got != "a stays" {
			t.Errorf("sent %q, want those whose contexts had not ended", got)
		}
	})
}

func TestGroupLeadersContextDoesNotEndTheOthersCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{hold: make(chan struct{})}
		g := newGroup(s.send)
		first := publishAll(g, t.Context(), "a")
		ctx, cancel := context.WithCancel(t.Context())
		leader := publishAll(g, ctx, "leader")
		other := publishAll(g, t.Context(), "other")
		s.hold <- struct{}{} // the first command returns; the leader's is away
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(s.hold)
		if err := errors.Join(<-first[0], <-leader[0], <-other[0]); err != nil {
			t.Error(err)
		}
		if err := s.ctxErr[1]; err != nil {
			t.Errorf("the common command ran under a context that ended: %v", err)
		}
	})
}

func TestGroupBoundsACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sender{hold: make(chan struct{})}
		g := newGroup(s.send)
		half := strings.Repeat("x", chunkBytes/2)
		bodies := []string{"first", half, half, "small"}
		for range chunkMessages + 1 {
			bodies = append(bodies, "y")
		}
		done := publishAll(g, t.Context(), bodies...)
		close(s.hold)
		for _, ch := range done {
			if err := <-ch; err != nil {
				t.Fatal(err)
			}
		}
		var sizes []int
		for _, c := range s.commands {
			sizes = append(sizes, len(c))
		}
		if want := []int{1, 2, chunkMessages, 2}; !slices.Equal(sizes, want) {
			t.Errorf("commands of %d messages, want %d", sizes, want)
		}
	})
}

func TestGroupSurvivesAPanicInTheCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, calls := make(chan struct{}), 0
		g := newGroup(func(context.Context, ...string) error {
			<-hold
			if calls++; calls == 2 {
				panic("hook")
			}
			return nil
		})
		first := publishAll(g, t.Context(), "a")
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_ = g.publish(t.Context(), "leader")
		}()
		synctest.Wait()
		other := publishAll(g, t.Context(), "other")
		close(hold)
		if v := <-panicked; v != "hook" {
			t.Errorf("the leader's caller saw %v, want the panic", v)
		}
		if err := <-first[0]; err != nil {
			t.Error(err)
		}
		if err := <-other[0]; !errors.Is(err, ErrMayBeStored) {
			t.Errorf("who was in the command that panicked: %v, want ErrMayBeStored", err)
		}
		if err := g.publish(t.Context(), "later"); err != nil {
			t.Errorf("a publish after the panic: %v", err)
		}
	})
}

func TestGroupUnderLoad(t *testing.T) {
	var commands, messages atomic.Int64
	g := newGroup(func(_ context.Context, bodies ...string) error {
		commands.Add(1)
		messages.Add(int64(len(bodies)))
		return nil
	})
	const routines, each = 32, 500
	var wg sync.WaitGroup
	for range routines {
		wg.Go(func() {
			for range each {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if err := g.publish(ctx, "x"); err != nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if got := messages.Load(); got != routines*each {
		t.Errorf("%d messages sent, want %d", got, routines*each)
	}
	if commands.Load() > messages.Load() {
		t.Errorf("%d commands for %d messages", commands.Load(), messages.Load())
	}
}
