package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// taken is what a pacer gave, and when.
type taken struct {
	slice
	at time.Duration
}

func takeAll(ctx context.Context, p *pacer) []taken {
	var all []taken
	for {
		s, ok := p.take(ctx)
		if !ok {
			return all
		}
		all = append(all, taken{s, p.clock.now()})
	}
}

func sum(all []taken) (n int64) {
	for _, s := range all {
		n += s.count
	}
	return n
}

func TestPaceWithoutRate(t *testing.T) {
	t.Parallel()
	all := takeAll(t.Context(), &pacer{clock: newClock(), batch: 256, limit: 600})
	if len(all) != 3 || all[2].slice != (slice{512, 88}) || sum(all) != 600 {
		t.Errorf("%+v", all)
	}
}

func TestPaceFollowsTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pacer{clock: newClock(), batch: 256, limit: 50, rate: 100}
		for i, s := range takeAll(t.Context(), p) {
			if want := time.Duration(i) * 10 * time.Millisecond; s.count != 1 || s.at != want || p.intended(s.first) != want {
				t.Errorf("%+v, intended at %s; want message %d at %s", s, p.intended(s.first), i, want)
			}
		}
	})
}

// A publisher that was held up sends what became due meanwhile, and the intended times stay as they were.
func TestPaceIsAnOpenLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pacer{clock: newClock(), batch: 256, limit: 1000, rate: 100}
		if s, ok := p.take(t.Context()); !ok || s != (slice{0, 1}) {
			t.Fatalf("%+v, %v", s, ok)
		}
		time.Sleep(time.Second) // the bubble's clock
		if s, _ := p.take(t.Context()); s != (slice{1, 100}) {
			t.Errorf("%+v after a second", s)
		}
		if at := p.intended(7); at != 70*time.Millisecond {
			t.Errorf("message 7 is intended at %s", at)
		}
	})
}

func TestPaceForADuration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pacer{clock: newClock(), batch: 256, until: time.Second, rate: 100}
		all := takeAll(t.Context(), p)
		if last := all[len(all)-1]; sum(all) != 100 || last.at != 990*time.Millisecond {
			t.Errorf("%d messages, the last at %s", sum(all), last.at)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := &pacer{clock: newClock(), batch: 256, until: time.Second, rate: 100}
		if _, ok := p.take(t.Context()); !ok {
			t.Fatal("no first message")
		}
		time.Sleep(5 * time.Second) // the bubble's clock: held up beyond the end
		if all := takeAll(t.Context(), p); len(all) != 1 || all[0].slice != (slice{1, 99}) {
			t.Errorf("%+v; want the 99 that were due in time", all)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		// A rate nobody can reach: it ends all the same.
		p := &pacer{clock: newClock(), batch: 256, until: time.Second, rate: 1e300}
		n := 0
		for {
			if _, ok := p.take(t.Context()); !ok {
				break
			}
			n++
			time.Sleep(10 * time.Millisecond) // the bubble's clock
		}
		if n != 100 {
			t.Errorf("%d slices", n)
		}
	})
}

func TestPaceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p := &pacer{clock: newClock(), batch: 256, limit: 10, rate: 1e-12} // the second is due in 30,000 years
		all := takeAll(ctx, p)
		if sum(all) != 1 || p.clock.now() != time.Minute {
			t.Errorf("%d messages, ended after %s", sum(all), p.clock.now())
		}
	})
}
