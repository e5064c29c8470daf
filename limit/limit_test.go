package limit_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/limit"
	"github.com/babelpool/babelpool/router"
)

// gauge is a handler that counts how many of it run, takes its time, and notes when it began.
type gauge struct {
	takes     time.Duration
	now, most atomic.Int32
	mu        sync.Mutex
	began     []time.Time
}

func (g *gauge) Handle(context.Context, *delivery.Delivery) error {
	n := g.now.Add(1)
	defer g.now.Add(-1)
	g.mu.Lock()
	g.began = append(g.began, time.Now())
	g.most.Store(max(g.most.Load(), n))
	g.mu.Unlock()
	time.Sleep(g.takes)
	return nil
}

func of(urn string) *delivery.Delivery {
	return &delivery.Delivery{Envelope: envelope.Envelope{URN: urn}}
}

// together runs n messages at once and returns what was answered.
func together(h delivery.Handler, n int) []error {
	answers := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { answers[i] = h.Handle(context.Background(), of("urn:a")) })
	}
	all.Wait()
	return answers
}

// putOff is how many of the answers put their message off, and for how long at least and at most.
func putOff(t *testing.T, answers []error) (n int, least, most time.Duration) {
	t.Helper()
	for _, err := range answers {
		var put *delivery.PostponeError
		switch {
		case err == nil:
			continue
		case !errors.As(err, &put) || !errors.Is(err, limit.ErrLimited):
			t.Errorf("answered %v", err)
			continue
		case n == 0:
			least, most = put.Delay, put.Delay
		}
		n, least, most = n+1, min(least, put.Delay), max(most, put.Delay)
	}
	return n, least, most
}

// Never more than n run, who waits longer than MaxWait is put off for a second, and the others get their turn.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes time.Duration
		opts  []limit.Option
		off   int
	}{
		"quick":        {100 * time.Millisecond, nil, 0},
		"slow":         {600 * time.Millisecond, nil, 14}, // two rounds begin within the second
		"slow, wait":   {600 * time.Millisecond, []limit.Option{limit.MaxWait(10 * time.Second)}, 0},
		"without wait": {100 * time.Millisecond, []limit.Option{limit.MaxWait(0)}, 17},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := &gauge{takes: tc.takes}
				n, least, most := putOff(t, together(limit.Concurrency(3, tc.opts...)(g), 20))
				if n != tc.off || len(g.began) != 20-tc.off || g.most.Load() != 3 {
					t.Errorf("%d put off, %d ran, %d at once; want %d put off and 3 at once", n, len(g.began), g.most.Load(), tc.off)
				}
				if n > 0 && (least != time.Second || most != time.Second) {
					t.Errorf("put off for %s to %s", least, most)
				}
			})
		})
	}
}

// A place is free again however a handler ends.
func TestConcurrencyAfterAccidents(t *testing.T) {
	t.Parallel()
	ends := []func(){func() { panic("boom") }, runtime.Goexit, func() {}}
	h := limit.Concurrency(1, limit.MaxWait(0))(delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error {
		end := ends[0]
		ends = ends[1:]
		end()
		return nil
	}))
	for range 3 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			if err := h.Handle(t.Context(), of("urn:a")); err != nil {
				t.Errorf("answered %v", err)
			}
		}()
		<-done
	}
	if len(ends) != 0 {
		t.Errorf("%d have not run", len(ends))
	}
}

// Who waits leaves when its context ends, and is put off, not failed; its place goes to the next.
func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	for name, limited := range map[string]func() router.Middleware{
		"concurrency": func() router.Middleware { return limit.Concurrency(1, limit.MaxWait(time.Hour)) },
		"rate":        func() router.Middleware { return limit.Rate(0.001, 1, limit.MaxWait(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := &gauge{takes: time.Minute}
				h := limited()(g)
				go func() { _ = h.Handle(context.Background(), of("urn:a")) }()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				began := time.Now()
				n, _, _ := putOff(t, []error{h.Handle(ctx, of("urn:a"))})
				if n != 1 || time.Since(began) != time.Second {
					t.Errorf("%d put off after %s", n, time.Since(began))
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// No more start than the rate and the burst allow, at any time.
func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gauge{}
		const perSecond, burst = 10, 5
		n, least, most := putOff(t, together(limit.Rate(perSecond, burst)(g), 40))
		// The burst, and what waits for a second.
		if len(g.began) != burst+perSecond || n != 25 {
			t.Errorf("%d ran and %d were put off", len(g.began), n)
		}
		for i, at := range g.began {
			if sooner := g.began[0].Add(time.Duration(max(0, i-burst+1)) * time.Second / perSecond); at.Before(sooner.Add(-time.Millisecond)) {
				t.Errorf("number %d began at %s, want %s", i, at, sooner)
			}
		}
		// Their turns are spread over the time that all need.
		if least != time.Second || most < 2*time.Second || most > 3*time.Second {
			t.Errorf("put off for %s to %s", least, most)
		}
	})
}

// What is put off comes to its end about as fast as the rate allows, and is put off a few times only, not each second anew.
func TestRateTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gauge{}
		h := limit.Rate(10, 1)(g)
		const n = 600
		var puts atomic.Int32
		began := time.Now()
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				for {
					err := h.Handle(context.Background(), of("urn:a"))
					if err == nil {
						return
					}
					var put *delivery.PostponeError
					errors.As(err, &put)
					puts.Add(1)
					time.Sleep((put.Delay + time.Second - 1).Truncate(time.Second)) // whole seconds (Z6)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		t.Logf("%d messages took %s, put off %d times", n, took, puts.Load())
		if took < 59*time.Second || took > 75*time.Second || puts.Load() > 3*n {
			t.Errorf("%d messages took %s, put off %d times", n, took, puts.Load())
		}
	})
}

// However many are before it, a message is not put off for longer than MaxDelay.
func TestMaxDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, _, most := putOff(t, together(limit.Rate(1, 1, limit.MaxDelay(7*time.Second))(&gauge{}), 100))
		if n != 98 || most != 7*time.Second {
			t.Errorf("%d put off, for %s at most", n, most)
		}
	})
}

// Each URN has its own limit, the others share one or have none.
func TestByURN(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, rest := range []bool{true, false} {
			limits := map[string]router.Middleware{"urn:a": limit.Concurrency(1, limit.MaxWait(0)), "urn:b": limit.Concurrency(2, limit.MaxWait(0))}
			if rest {
				limits[""] = limit.Concurrency(3, limit.MaxWait(0))
			}
			h := limit.ByURN(limits)(&gauge{takes: time.Second})
			ran := map[string]int{}
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 5 {
				for _, urn := range []string{"urn:a", "urn:b", "urn:c", "urn:d"} {
					all.Go(func() {
						if err := h.Handle(context.Background(), of(urn)); err == nil {
							mu.Lock()
							defer mu.Unlock()
							if urn == "urn:d" {
								urn = "urn:c"
							}
							ran[urn]++
						}
					})
				}
			}
			all.Wait()
			want := 10
			if rest {
				want = 3
			}
			if ran["urn:a"] != 1 || ran["urn:b"] != 2 || ran["urn:c"] != want {
				t.Errorf("ran: %v", ran)
			}
		}
	})
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"no place":       func() { limit.Concurrency(0) },
		"no rate":        func() { limit.Rate(0, 1) },
		"no burst":       func() { limit.Rate(1, 0) },
		"negative wait":  func() { limit.Concurrency(1, limit.MaxWait(-1)) },
		"too short wait": func() { limit.Rate(1, 1, limit.MaxDelay(time.Millisecond)) },
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
