package publisher

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// group joins single publishes into common commands. While a command is away, those who come meanwhile queue
// up; when it is back, the first of them takes the whole queue along in the next command. So a lone publish
// goes out at once, and many goroutines share round trips. There are no timers and no goroutines of its own: it is
// always one of the callers who sends.
type group struct {
	send func(ctx context.Context, bodies ...string) error

	mu    sync.Mutex
	away  bool      // a command is away, or somebody is about to send one
	queue []*joiner // who waits for it, in order
	idle  sync.Pool // *joiner
}

// joiner is one message in the queue.
type joiner struct {
	body  string
	turn  chan bool // true: lead the batch; false: sent by another, err is set
	batch []*joiner // of the leader, itself first
	err   error
}

func newGroup(send func(ctx context.Context, bodies ...string) error) *group {
	g := &group{send: send}
	g.idle.New = func() any { return &joiner{turn: make(chan bool, 1)} }
	return g
}

// publish stores one body. ctx ends the wait in the queue; once the message is in a command, its outcome is
// waited for.
func (g *group) publish(ctx context.Context, body string) error {
	g.mu.Lock()
	if !g.away {
		g.away = true
		g.mu.Unlock()
		defer g.pass()
		return g.send(ctx, body)
	}
	j := g.idle.Get().(*joiner)
	j.body = body
	g.queue = append(g.queue, j)
	g.mu.Unlock()
	defer g.forget(j)

	var lead bool
	select {
	case lead = <-j.turn:
	case <-ctx.Done():
		if g.leave(j) {
			return fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
		}
		lead = <-j.turn // it is in a command already, or leads one
	}
	if lead {
		g.lead(ctx, j)
	}
	return j.err
}

// lead sends the batch of a joiner. The others' messages must not fail with the leader's context, so the
// client's own timeouts bound the call where there are any.
func (g *group) lead(ctx context.Context, j *joiner) {
	err := fmt.Errorf("%w: the publisher's goroutine ended", ErrMayBeStored) // stands when a hook panics
	batch := j.batch
	defer func() {
		j.err = err
		for _, other := range batch[1:] {
			other.err = err
			other.turn <- false
		}
		g.pass()
	}()
	bodies := make([]string, len(batch))
	for i, one := range batch {
		bodies[i] = one.body
	}
	if len(batch) > 1 {
		ctx = context.WithoutCancel(ctx)
	}
	err = g.send(ctx, bodies...)
}

// pass makes the first in the queue the next leader, or notes that nobody is there.
func (g *group) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.away = false
		return
	}
	n, size := 0, 0
	for n < len(g.queue) && n < chunkMessages && (n == 0 || size+len(g.queue[n].body) <= chunkBytes) {
		size += len(g.queue[n].body)
		n++
	}
	leader := g.queue[0]
	leader.batch = slices.Clone(g.queue[:n])
	g.queue = slices.Delete(g.queue, 0, n)
	leader.turn <- true
}

// leave takes a joiner out of the queue; false when it is in a command already.
func (g *group) leave(j *joiner) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, j)
	if i < 0 {
		return false
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return true
}

// forget puts a joiner away for the next publish.
func (g *group) forget(j *joiner) {
	j.body, j.batch = "", nil
	g.idle.Put(j)
}
