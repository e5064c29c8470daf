package pool_test

import (
	"flag"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/testredis"
)

// patience is how long a test waits for what should happen at once on an idle machine.
const patience = 30 * time.Second

// TestMain runs more tests side by side than there are processors: most of the time they wait for leases and
// delays, which are whole seconds. A -parallel flag still counts.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "24"); err != nil {
		panic(err)
	}
	testredis.Main(m)
}

// receive waits for the next value of a channel.
func receive[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("not within %v: %s", patience, what)
		panic("unreachable")
	}
}

// collect waits for n values of a channel.
func collect[T any](t testing.TB, ch <-chan T, n int, what string) []T {
	t.Helper()
	values := make([]T, 0, n)
	for range n {
		values = append(values, receive(t, ch, what))
	}
	return values
}
