package slots

import (
	"context"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plenty is a budget of bytes that never runs out.
const plenty = 1 << 40

// asked is one call of Acquire on a goroutine of its own.
type asked struct {
	n     int
	bytes int64
	err   error
	done  chan struct{}
}

func ask(ctx context.Context, p *Pool, q, most int, mostBytes int64) *asked {
	a := &asked{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.n, a.bytes, a.err = p.Acquire(ctx, q, most, mostBytes)
	}()
	return a
}

// got is how many slots it has by now; 0 while it waits. Called in a bubble.
func (a *asked) got() int {
	synctest.Wait()
	select {
	case <-a.done:
		return a.n
	default:
		return 0
	}
}

// take acquires at once or fails.
func take(t *testing.T, p *Pool, q, most int) int {
	t.Helper()
	n, _, err := p.Acquire(ended(), q, most, 1)
	if err != nil {
		t.Fatalf("queue %d gets nothing of %d", q, most)
	}
	p.Release(q, 0, 1)
	return n
}

// ended is a context that has ended: Acquire then takes what there is, or fails without waiting.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
