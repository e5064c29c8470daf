package batch

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
)

// DefaultWait is the Wait of a Config that sets none.
const DefaultWait = 100 * time.Millisecond

// Config says how large batches are.
type Config struct {
	// Size is how many messages a batch has at most. Required, at least 1.
	Size int
	// Wait is how long the first message of a batch waits for others. Defaults to 100 ms.
	Wait time.Duration
}

// New makes a handler of a function that takes messages together. It panics when the config is no good.
func New(cfg Config, f func(ctx context.Context, messages []*Message) error) delivery.Handler {
	if f == nil {
		panic("batch: New needs a function")
	}
	g := newGatherer(cfg, func(ctx context.Context, items []*Item[struct{}]) error {
		messages := make([]*Message, len(items))
		for i, item := range items {
			messages[i] = &item.Message
		}
		return f(ctx, messages)
	})
	return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error { return g.handle(ctx, d, struct{}{}) })
}

// Typed is New with the data of each message bound as router.Typed does: what does not fit T is dead-lettered by itself, and is
// in no batch.
func Typed[T any](cfg Config, f func(ctx context.Context, items []*Item[T]) error, options ...router.TypedOption) delivery.Handler {
	if f == nil {
		panic("batch: Typed needs a function")
	}
	return router.Typed(newGatherer(cfg, f).handle, options...)
}

// gatherer puts messages together.
type gatherer[T any] struct {
	cfg Config
	run func(context.Context, []*Item[T]) error

	mu   sync.Mutex
	open *open[T] // takes messages; nil = the next one opens another
}

// open is a batch that has not begun. Its fields are the gatherer's to lock.
type open[T any] struct {
	members  []*member[T]
	contexts []context.Context // of the members, in their order
	timer    *time.Timer       // begins the batch
	begun    bool
}

func newGatherer[T any](cfg Config, run func(context.Context, []*Item[T]) error) *gatherer[T] {
	if cfg.Size < 1 || cfg.Wait < 0 {
		panic(fmt.Sprintf("batch: Size is %d, of at least 1, and Wait %s, of at least 0", cfg.Size, cfg.Wait))
	}
	if cfg.Wait == 0 {
		cfg.Wait = DefaultWait
	}
	return &gatherer[T]{cfg: cfg, run: run}
}

// handle puts a message in a batch and waits for its outcome.
func (g *gatherer[T]) handle(ctx context.Context, d *delivery.Delivery, value T) error {
	m := &member[T]{&Item[T]{Message{Delivery: d}, value}, make(chan error, 1)}
	b := g.join(ctx, m)
	select {
	case outcome := <-m.ended:
		return outcome
	case <-ctx.Done():
	}
	if g.leave(b, m) {
		return context.Cause(ctx)
	}
	return <-m.ended // it runs, and the function has the delivery
}

// join adds a message to the open batch. The one that fills it lets it begin.
func (g *gatherer[T]) join(ctx context.Context, m *member[T]) *open[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.open
	if b == nil {
		b = &open[T]{}
		b.timer = time.AfterFunc(g.cfg.Wait, func() { g.begin(b) })
		g.open = b
	}
	b.members, b.contexts = append(b.members, m), append(b.contexts, ctx)
	if len(b.members) == g.cfg.Size {
		g.open = nil
		b.timer.Reset(0) // it runs on a goroutine of its own, whoever fills it
	}
	return b
}

// leave takes a message out of its batch, unless that has begun.
func (g *gatherer[T]) leave(b *open[T], m *member[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b.begun {
		return false
	}
	i := slices.Index(b.members, m)
	b.members, b.contexts = slices.Delete(b.members, i, i+1), slices.Delete(b.contexts, i, i+1)
	return true
}

// begin runs a batch and tells its members what became of them.
func (g *gatherer[T]) begin(b *open[T]) {
	g.mu.Lock()
	again := b.begun // a full batch whose time was over at the same moment
	b.begun = true
	if g.open == b {
		g.open = nil
	}
	g.mu.Unlock()
	if again || len(b.members) == 0 {
		return
	}

	ctx, stop := untilAll(b.contexts)
	defer stop()
	items := make([]*Item[T], len(b.members))
	for i, m := range b.members {
		items[i] = m.Item
	}
	rest := router.ErrExited // stands until the function has said otherwise: runtime.Goexit runs the deferred calls alone
	defer func() {
		if v := recover(); v != nil {
			rest = &router.PanicError{Value: v, Stack: debug.Stack()}
		}
		for _, m := range b.members {
			if !m.done {
				m.outcome = rest
			}
			m.ended <- m.outcome
		}
	}()
	rest = g.run(ctx, items)
}

// untilAll is a context with the values of the first, which ends when the last has ended, for the reason of that.
func untilAll(all []context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(all[0]))
	var mu sync.Mutex
	left := len(all)
	stops := make([]func() bool, len(all))
	for i, one := range all {
		stops[i] = context.AfterFunc(one, func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				cancel(context.Cause(one))
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(context.Canceled)
	}
}
