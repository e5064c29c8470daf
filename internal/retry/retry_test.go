package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waited is how long a wait took. Called in a bubble.
func waited(t *testing.T, wait func(context.Context) error) time.Duration {
	t.Helper()
	began := time.Now()
	if err := wait(t.Context()); err != nil {
		t.Fatalf("the wait gives up: %v", err)
	}
	return time.Since(began)
}

// TestAtMostFiveTriesInAnySecond holds B15's rate while Redis is away, for many a random sequence.
func TestAtMostFiveTriesInAnySecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 300 {
			l := New()
			var tries []time.Time
			for range 20 {
				waited(t, l.Wait)
				tries = append(tries, time.Now())
			}
			for i := 5; i < len(tries); i++ {
				if d := tries[i].Sub(tries[i-5]); d <= time.Second {
					t.Fatalf("six tries within %s", d)
				}
			}
		}
	})
}

// TestWaitsGrowAndStayBounded bounds each pause: consumption goes on within 2 s of Redis being back.
func TestWaitsGrowAndStayBounded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		wait    func(*Loop) func(context.Context) error
		initial time.Duration
		limit   time.Duration
	}{
		{"fast", func(l *Loop) func(context.Context) error { return l.Wait }, 100 * time.Millisecond, 650 * time.Millisecond},
		{"slow", func(l *Loop) func(context.Context) error { return l.Slow }, time.Second, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for range 100 {
					l := New()
					wait := tc.wait(l)
					for i := range 12 {
						nominal := min(tc.initial<<i, tc.limit)
						if d := waited(t, wait); d < nominal/2 || d > nominal*3/2+time.Millisecond {
							t.Fatalf("pause %d is %s, want %s give or take a half", i, d, nominal)
						}
					}
					l.Reset()
					if d := waited(t, wait); d > tc.initial*3/2+time.Millisecond {
						t.Fatalf("after a success the pause is %s", d)
					}
				}
			})
		})
	}
}

// TestNeverGivesUp goes past the library's default limit of a quarter of an hour, after which it would say
// Stop, a negative pause (B35).
func TestNeverGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, began := New(), time.Now()
		for time.Since(began) < 6*time.Hour {
			if d := waited(t, l.Wait); d <= 0 {
				t.Fatalf("pause of %s after %s", d, time.Since(began))
			}
			if d := l.NextSlow(); d == backoff.Stop || d < time.Second/2 || d > 7500*time.Millisecond {
				t.Fatalf("slow pause of %s after %s", d, time.Since(began))
			}
		}
	})
}

func TestWaitsEndWithTheContextsCause(t *testing.T) {
	t.Parallel()
	why := errors.New("the pool stops")
	for name, wait := range map[string]func(context.Context) error{
		"Wait":  New().Wait,
		"Slow":  New().Slow,
		"Sleep": func(ctx context.Context) error { return Sleep(ctx, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
				defer stop.Stop()
				if err := wait(ctx); !errors.Is(err, why) {
					t.Errorf("got %v, want the cause", err)
				}
				if d := time.Since(began); d != 10*time.Millisecond {
					t.Errorf("returned after %s", d)
				}
				if err := wait(ctx); !errors.Is(err, why) || time.Since(began) != 10*time.Millisecond {
					t.Errorf("an ended context: %v after %s", err, time.Since(began))
				}
			})
		})
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{-time.Second, 0, time.Minute} {
			if got := waited(t, func(ctx context.Context) error { return Sleep(ctx, d) }); got != max(d, 0) {
				t.Errorf("slept %s, want %s", got, d)
			}
		}
	})
}
