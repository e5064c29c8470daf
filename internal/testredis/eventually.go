package testredis

import (
	"fmt"
	"testing"
	"time"
)

// pollEvery is the pause between two looks. It is short beside anything tests wait for and long
// beside what a look costs.
const pollEvery = 2 * time.Millisecond

// Eventually waits until cond holds, looking at once and then every 2 ms, and fails the test when
// it does not hold within the given time. The message and its arguments say what was waited for.
// It must be called by the test's own goroutine. Prefer a channel where the code offers one.
func Eventually(t testing.TB, within time.Duration, cond func() bool, msg string, args ...any) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !cond() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			if cond() { // a busy machine may have kept this goroutine from looking in time
				return
			}
			t.Fatalf("not within %v: %s", within, fmt.Sprintf(msg, args...))
		}
	}
}

// Await waits until the channel brings something, which it returns, or is closed, and fails the test when
// neither happens within the given time; what says what was waited for. It must be called by the test's
// own goroutine.
func Await[T any](t testing.TB, ch <-chan T, within time.Duration, what string) (got T) {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case got = <-ch:
	case <-timer.C:
		t.Fatalf("not within %v: %s", within, what)
	}
	return got
}
