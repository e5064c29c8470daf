package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/publisher"
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

// stallingSender takes half a second for each of its first calls.
type stallingSender struct {
	stalls int
	err    error // of the messages of those calls
}

// PublishBatch takes its time.
func (s *stallingSender) PublishBatch(_ context.Context, messages []publisher.Message) ([]publisher.Result, error) {
	results := make([]publisher.Result, len(messages))
	if s.stalls == 0 {
		return results, nil
	}
	s.stalls--
	time.Sleep(500 * time.Millisecond) // the bubble's clock
	for i := range results {
		results[i].Err = s.err
	}
	return results, s.err
}

// With -rate, what is sent late is told, and it is late from the time it was due.
func TestMissedSends(t *testing.T) {
	t.Parallel()
	// Message i is due after i × 10 ms. One publisher, because a bubble's clock stands still while others queue
	// behind the one that waits in the pacer.
	paced := config{messages: 100, payload: 300, rate: 100}
	for name, tt := range map[string]struct {
		cfg          config
		sender       sender
		missed, most int64
		atLeast, max float64
	}{
		"in time": {paced, &scriptedSender{}, 0, 0, 0, 0},
		// Message 0 is sent in time. At 500 ms those from 1 to 50 are sent: 49 is 10 ms late, which is allowed, and
		// those before it are later.
		"held up": {paced, &stallingSender{stalls: 1}, 48, 48, 490, 490},
		// Message 0 is sent when it is taken, not when it is first tried. That pauses for 50 to 150 ms.
		"refused at first": {paced, &stallingSender{1, publisher.ErrUnavailable}, 53, 65, 540, 660},
		// It is sent once, however often it is tried.
		"refused for long": {
			config{messages: 1, payload: 300, rate: 100}, &stallingSender{3, publisher.ErrUnavailable}, 1, 1, 1700, 3000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tr, _, _ := fakeTrial(t, tt.cfg)
				tr.sender = tt.sender
				if err := tr.publisher(t.Context(), newPacer(tr.cfg, tr.clock)); err != nil {
					t.Fatal(err)
				}
				r := tr.report()
				if r.MissedSends == nil || r.LateMSMax == nil {
					t.Fatal("not told")
				}
				if *r.MissedSends < tt.missed || *r.MissedSends > tt.most ||
					*r.LateMSMax < tt.atLeast || *r.LateMSMax > tt.max {
					t.Errorf("missed %d, the latest by %v ms", *r.MissedSends, *r.LateMSMax)
				}
				var table strings.Builder
				r.writeTable(&table)
				if !strings.Contains(table.String(), "\n  missed sends ") {
					t.Errorf("not in the table:\n%s", &table)
				}
			})
		})
	}
}

func TestNoSendIsMissedWithoutARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr, _, _ := fakeTrial(t, config{messages: 100, payload: 300, prefill: true})
		tr.sender = &stallingSender{stalls: 1}
		if err := tr.publisher(t.Context(), newPacer(tr.cfg, tr.clock)); err != nil {
			t.Fatal(err)
		}
		r := tr.report()
		var table strings.Builder
		r.writeTable(&table)
		if r.MissedSends != nil || r.LateMSMax != nil || strings.Contains(table.String(), "missed") {
			t.Errorf("missed sends without a rate:\n%s", &table)
		}
	})
}
