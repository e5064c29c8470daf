package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatience(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg  config
		want time.Duration
	}{
		"least":        {config{retryAfter: 2 * time.Second}, 30 * time.Second},
		"lease":        {config{retryAfter: 90 * time.Second}, 270 * time.Second},
		"backoff":      {config{retryAfter: 2 * time.Second, backoff: time.Hour}, 2 * time.Hour},
		"slow handler": {config{retryAfter: 2 * time.Second, handlerTime: handlerTime{mean: time.Minute}}, 90 * time.Second},
		"exponential":  {config{retryAfter: 2 * time.Second, handlerTime: handlerTime{mean: time.Minute, exponential: true}}, 20*time.Minute + 30*time.Second},
		"slow rate":    {config{retryAfter: 2 * time.Second, rate: 0.1}, 50 * time.Second},
	} {
		if got := tt.cfg.patience(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestWatchNoticesAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr, _, _ := fakeTrial(t, config{messages: 1, retryAfter: 2 * time.Second})
		err := tr.watch(t.Context())
		if err == nil || !strings.Contains(err.Error(), "stalled") {
			t.Errorf("error %v", err)
		}
		if passed := tr.clock.now(); passed < leastStall || passed > leastStall+time.Second {
			t.Errorf("after %s", passed)
		}
	})
}

func TestWatchTellsAnInterruptFromTheEnd(t *testing.T) {
	t.Parallel()
	for cause, told := range map[error]bool{context.Canceled: true, errOver: false} {
		tr, _, stderr := fakeTrial(t, config{messages: 1, retryAfter: 2 * time.Second})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if err := tr.watch(ctx); err != nil {
			t.Error(err)
		}
		if strings.Contains(stderr.String(), "interrupted") != told {
			t.Errorf("%v: told %q", cause, stderr)
		}
	}
}

func TestFailuresAreReproducible(t *testing.T) {
	t.Parallel()
	const messages, p = 20_000, 0.05
	first, second, both := 0, 0, 0
	for seq := range int64(messages) {
		a, b := fails(seq, 1, p), fails(seq, 2, p)
		if a != fails(seq, 1, p) {
			t.Fatalf("message %d: two answers", seq)
		}
		if a {
			first++
		}
		if b {
			second++
		}
		if a && b {
			both++
		}
		if fails(seq, 1, 0) || !fails(seq, 1, 1) {
			t.Fatalf("message %d: wrong at the ends of the range", seq)
		}
	}
	for what, n := range map[string]int{"first": first, "second": second} {
		if n < 900 || n > 1100 {
			t.Errorf("%d of %d %s deliveries fail, want about 5 %%", n, messages, what)
		}
	}
	if both < 20 || both > 90 {
		t.Errorf("%d messages fail twice, want about 50: deliveries must not depend on each other", both)
	}
}
