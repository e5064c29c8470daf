package routertest

import (
	"context"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/router"
)

// Config is what a Kit is made of. The zero value of every field is its default.
type Config struct {
	// Handler is what is tested, usually a *router.Mux with its middleware. Required.
	Handler delivery.Handler
	// Layout is the layout of the queue. Defaults to Legacy.
	Layout Layout
	// Queue is the queue's logical name. Defaults to "test".
	Queue string
	// Policy is what the pool does with failures; pool.Config.Policy makes it of a pool's config. The zero value
	// never gives a failing message up, and leaves it to its lease.
	Policy router.Policy
	// Logger gets what the pool would log. Defaults to none.
	Logger *slog.Logger
}

// Kit runs messages through a router. It is safe for concurrent use.
type Kit struct{ cfg Config }

// New makes a Kit. It panics without a handler.
func New(cfg Config) *Kit {
	if cfg.Handler == nil {
		panic("routertest: Config.Handler is required")
	}
	if cfg.Layout == 0 {
		cfg.Layout = Legacy
	}
	if cfg.Queue == "" {
		cfg.Queue = "test"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Kit{cfg}
}

// Run delivers a message once and tells what became of it. The handler runs under a context of the pool's kind, which
// ends with ctx: one cancelled with the cause pool.ErrHardStop is a pool that stops. Run panics when the message cannot
// be made.
func (k *Kit) Run(ctx context.Context, m Message) Outcome {
	ready := m.text(k.cfg.Layout, k.cfg.Queue)
	var out Outcome
	policy := k.cfg.Policy
	policy.OnError = func(ctx context.Context, err error, env envelope.Envelope, raw string) {
		out.Err = err
		if hook := k.cfg.Policy.OnError; hook != nil {
			hook(ctx, err, env, raw)
		}
	}
	if hook := policy.OnUnknownURN; hook != nil {
		policy.OnUnknownURN = func(ctx context.Context, err error, env envelope.Envelope, raw string) error {
			out.Err = hook(ctx, err, env, raw) // it answers in the handler's place
			return out.Err
		}
	}
	handler := delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
		err := k.cfg.Handler.Handle(ctx, d)
		out.Err = err // not all that a handler answers is an error to OnError
		return err
	})

	var counts flow.Counters
	settled, buffer := make(chan flow.Settlement, 1), flow.NewBuffer([]int{1})
	queue := router.Queue{
		Name: k.cfg.Queue, Layout: k.cfg.Layout, Handler: handler, Counters: &counts, Out: settled,
		Book: flow.NewBook(0, false, 0), // a lease without an end: nobody renews it here
	}
	rt := router.New(router.Config{
		Workers: 1, Source: buffer, Queues: []router.Queue{queue}, Policy: policy, Logger: k.cfg.Logger,
	})
	lease, ok := reserve(k.cfg.Layout, ready)
	if ok {
		buffer.Put(0, lease.Items)
	} else {
		rt.Refused(ctx, 0, ready)
		out.buried(ready)
	}
	buffer.Close()
	_ = rt.Run(ctx) // never fails; it waits for the hooks as well
	if ok {
		out.settled(k.cfg.Layout, ready, <-settled)
	}
	out.Ran, out.Failed = counts.Started.Load() > 0, counts.Failed.Load() > 0
	return out
}

// RunAll delivers messages at the same time, each by a worker of its own, and tells what became of each: for handlers
// that wait for one another.
func (k *Kit) RunAll(ctx context.Context, messages ...Message) []Outcome {
	all := make([]Outcome, len(messages))
	var workers errgroup.Group
	for i, m := range messages {
		workers.Go(func() error { all[i] = k.Run(ctx, m); return nil })
	}
	_ = workers.Wait() // never fails
	return all
}

// RunToEnd delivers a message again and again until it is gone, without waiting in between, at most most times. It tells
// what became of each delivery.
func (k *Kit) RunToEnd(ctx context.Context, m Message, most int) []Outcome {
	var all []Outcome
	for len(all) < most {
		out := k.Run(ctx, m)
		all = append(all, out)
		if out.Next == nil {
			break
		}
		m = *out.Next
	}
	return all
}
