package batch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/batch"
	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/routertest"
)

var errBoom = errors.New("boom")

func numbered(n int) *delivery.Delivery {
	return &delivery.Delivery{Envelope: envelope.Envelope{URN: "urn:a", Data: strconv.Itoa(n)}}
}

// collector is a batch function that notes what it got, and when.
type collector struct {
	mu      sync.Mutex
	batches []string
	began   time.Time
	then    func(ctx context.Context, messages []*batch.Message) error
}

func (c *collector) run(ctx context.Context, messages []*batch.Message) error {
	var texts []string
	for _, m := range messages {
		texts = append(texts, m.Data)
	}
	c.mu.Lock()
	c.batches = append(c.batches, fmt.Sprintf("%s: %s", time.Since(c.began), strings.Join(texts, " ")))
	c.mu.Unlock()
	if c.then == nil {
		return nil
	}
	return c.then(ctx, messages)
}

// handle sends numbered messages one after another, and returns the channels of their outcomes.
func handle(ctx context.Context, h delivery.Handler, from, to int) []chan error {
	var outcomes []chan error
	for n := from; n < to; n++ {
		outcome := make(chan error, 1)
		go func() { outcome <- h.Handle(ctx, numbered(n)) }()
		synctest.Wait()
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

// A batch runs when it is full, or after Wait.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{began: time.Now()}
		h := batch.New(batch.Config{Size: 3, Wait: time.Second}, c.run)
		outcomes := handle(context.Background(), h, 0, 5)
		time.Sleep(700 * time.Millisecond)
		outcomes = append(outcomes, handle(context.Background(), h, 5, 6)...) // fills the second
		outcomes = append(outcomes, handle(context.Background(), h, 6, 7)...)
		for i, outcome := range outcomes {
			if err := <-outcome; err != nil {
				t.Errorf("number %d: %v", i, err)
			}
		}
		want := []string{"0s: 0 1 2", "700ms: 3 4 5", "1.7s: 6"}
		if !slices.Equal(c.batches, want) {
			t.Errorf("batches %q, want %q", c.batches, want)
		}
	})
}

// A batch that is filled at the instant its time is over runs once.
func TestFilledAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{began: time.Now()}
		h := batch.New(batch.Config{Size: 2, Wait: time.Second}, c.run)
		const rounds = 200
		for range rounds {
			var both sync.WaitGroup
			both.Go(func() { _ = h.Handle(context.Background(), numbered(1)) })
			synctest.Wait()
			both.Go(func() {
				time.Sleep(time.Second)
				_ = h.Handle(context.Background(), numbered(2))
			})
			both.Wait()
		}
		time.Sleep(time.Minute)
		ran := 0
		for _, b := range c.batches {
			ran += strings.Count(b, " ")
		}
		if ran != 2*rounds {
			t.Errorf("%d messages ran, want %d", ran, 2*rounds)
		}
	})
}

// Each message gets what Done says, the others what the function returns.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	later := delivery.RetryAfter(time.Minute, nil)
	for name, tc := range map[string]struct {
		rest func() error
		want func(err error) bool
	}{
		"success": {func() error { return nil }, func(err error) bool { return err == nil }},
		"failure": {func() error { return errBoom }, func(err error) bool { return errors.Is(err, errBoom) }},
		"panic": {func() error { panic(errBoom) }, func(err error) bool {
			var p *router.PanicError
			return errors.As(err, &p) && p.Value == errBoom && strings.Contains(string(p.Stack), "batch_test.go") //nolint:errorlint // what it panicked with
		}},
		"goexit": {func() error { runtime.Goexit(); return nil }, func(err error) bool { return errors.Is(err, router.ErrExited) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &collector{then: func(_ context.Context, messages []*batch.Message) error {
					messages[0].Done(nil)
					messages[1].Done(errBoom)
					messages[1].Done(later)
					return tc.rest()
				}}
				h := batch.New(batch.Config{Size: 4}, c.run)
				outcomes := handle(context.Background(), h, 0, 4)
				if err := <-outcomes[0]; err != nil {
					t.Errorf("the first: %v", err)
				}
				if err := <-outcomes[1]; !errors.Is(err, later) {
					t.Errorf("the second: %v", err)
				}
				for _, outcome := range outcomes[2:] {
					if err := <-outcome; !tc.want(err) {
						t.Errorf("one of the rest: %v", err)
					}
				}
			})
		})
	}
}

// Who waits leaves when its context ends, with the cause; the others go on. A batch that all have left does not run.
func TestLeaving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{began: time.Now()}
		h := batch.New(batch.Config{Size: 3, Wait: time.Second}, c.run)
		ctx, cancel := context.WithCancelCause(context.Background())
		leaves := handle(ctx, h, 0, 1)
		stays := handle(context.Background(), h, 1, 2)
		cancel(errBoom)
		if err := <-leaves[0]; !errors.Is(err, errBoom) {
			t.Errorf("who left: %v", err)
		}
		stays = append(stays, handle(context.Background(), h, 2, 4)...)
		for _, outcome := range stays {
			if err := <-outcome; err != nil {
				t.Errorf("who stayed: %v", err)
			}
		}
		alone := handle(ctx, h, 4, 5) // its context has ended already
		if err := <-alone[0]; !errors.Is(err, errBoom) {
			t.Errorf("who came too late: %v", err)
		}
		time.Sleep(time.Minute)
		if want := []string{"0s: 1 2 3"}; !slices.Equal(c.batches, want) {
			t.Errorf("batches %q, want %q", c.batches, want)
		}
	})
}

// The function's context has the values of the first message's, and ends with the last of them. Nobody returns before the
// function has: it may still read the messages.
func TestContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		parent := context.WithValue(context.Background(), key{}, "first")
		first, endFirst := context.WithCancelCause(parent)
		second, endSecond := context.WithCancelCause(context.Background())
		var cause error
		var value any
		h := batch.New(batch.Config{Size: 2}, func(ctx context.Context, _ []*batch.Message) error {
			<-ctx.Done()
			cause, value = context.Cause(ctx), ctx.Value(key{})
			time.Sleep(time.Second)
			return nil
		})
		outcomes := append(handle(first, h, 0, 1), handle(second, h, 1, 2)...)
		endFirst(errors.New("the first cause"))
		synctest.Wait()
		if value != nil {
			t.Error("the context ended with the first message's")
		}
		endSecond(errBoom)
		synctest.Wait()
		select {
		case err := <-outcomes[0]:
			t.Errorf("a message is let go while its batch runs: %v", err)
		default:
		}
		for _, outcome := range outcomes {
			if err := <-outcome; err != nil {
				t.Error(err)
			}
		}
		if !errors.Is(cause, errBoom) || value != "first" {
			t.Errorf("ended by %v, with the value %v", cause, value)
		}
	})
}

type order struct {
	Number int `json:"number"`
}

// Data that does not fit is dead-lettered by itself. A test of a user's: the kit runs the messages side by side.
func TestTyped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []int
		mux := router.NewMux()
		mux.Register("urn:a", batch.Typed(batch.Config{Size: 5}, func(_ context.Context, orders []*batch.Item[order]) error {
			for _, o := range orders {
				got = append(got, o.Value.Number)
				if o.Value.Number == 2 {
					o.Done(errBoom)
				}
			}
			return nil
		}))
		kit := routertest.New(routertest.Config{Handler: mux, Layout: routertest.Zset})
		fates := make([]routertest.Fate, 4)
		var all sync.WaitGroup
		for i, data := range []any{map[string]any{"number": 1}, map[string]any{"number": 2}, map[string]any{"number": "three"}, map[string]any{"number": 4}} {
			all.Go(func() { fates[i] = kit.Run(context.Background(), routertest.Message{URN: "urn:a", Data: data}).Fate })
		}
		all.Wait()
		slices.Sort(got)
		if !slices.Equal(got, []int{1, 2, 4}) {
			t.Errorf("the batch had %v", got)
		}
		want := []routertest.Fate{routertest.Acked, routertest.Left, routertest.DeadLettered, routertest.Acked}
		if !slices.Equal(fates, want) {
			t.Errorf("fates %v, want %v", fates, want)
		}
	})
}

// However many come at once, each is in one batch, and none is larger than Size.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const n, size = 5000, 7
	var mu sync.Mutex
	seen := map[string]int{}
	h := batch.New(batch.Config{Size: size, Wait: time.Millisecond}, func(_ context.Context, messages []*batch.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if len(messages) < 1 || len(messages) > size {
			t.Errorf("a batch of %d", len(messages))
		}
		for _, m := range messages {
			seen[m.Data]++
		}
		return nil
	})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for k := range n / 50 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(k%3)*300*time.Microsecond+time.Minute*time.Duration(k%3/2))
				err := h.Handle(ctx, numbered(i*n+k))
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
				if err == nil {
					mu.Lock()
					if seen[strconv.Itoa(i*n+k)] != 1 {
						t.Errorf("number %d was in %d batches", i*n+k, seen[strconv.Itoa(i*n+k)])
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if len(seen) == 0 {
		t.Error("nothing ran")
	}
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	f := func(context.Context, []*batch.Message) error { return nil }
	for name, f := range map[string]func(){
		"no size":       func() { batch.New(batch.Config{}, f) },
		"negative wait": func() { batch.New(batch.Config{Size: 1, Wait: -1}, f) },
		"no function":   func() { batch.New(batch.Config{Size: 1}, nil) },
		"none, typed":   func() { batch.Typed[int](batch.Config{Size: 1}, nil) },
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
}
