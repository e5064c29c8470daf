package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/retry"
)

// callTimeout bounds one call to Redis where the client honours deadlines.
const callTimeout = 5 * time.Second

// Store is what the scheduler needs of a queue. It is called from several goroutines; ctx bounds each call.
type Store interface {
	// Renew raises the expiry of held leases; a result other than Done means that the lease is gone.
	Renew(ctx context.Context, handles []string) ([]flow.Result, error)
	// Sweep moves at most limit expired or due messages to ready.
	Sweep(ctx context.Context, limit int) (moved int, err error)
	// Audit looks for what no sweep brings back.
	Audit(ctx context.Context) (flow.Audit, error)
	// Adopt gives values that still are orphans a lease.
	Adopt(ctx context.Context, values []string) (adopted int, err error)
	// Paused looks whether the queue is paused in Redis.
	Paused(ctx context.Context) (bool, error)
	// Trim discards the oldest dead letters that are beyond the limits, some at a time; more says that there are others.
	Trim(ctx context.Context, limits flow.DeadLetterLimits) (discarded int, more bool, err error)
}

// Queue is one queue as the scheduler sees it.
type Queue struct {
	Name     string
	Store    Store
	Book     *flow.Book
	Counters *flow.Counters
	LastCall func() time.Time // when the reserver last swept; it does so with each call
	Chunk    int              // most messages a sweep moves per call
	Lease    time.Duration    // retryAfter; 0 = disabled
	Adopt    bool             // give orphans a lease (L7)
	Limits   flow.DeadLetterLimits

	Pause     *flow.Pause
	OnPaused  func(on bool)             // told what Redis says
	Unstarted func() int                // messages that wait in this process for a worker
	HandBack  func(ctx context.Context) // returns those to the head of ready
}

// Config is what a Scheduler is made of.
type Config struct {
	Queues []Queue
	Tick   time.Duration // how often to look whether a queue needs a sweep
	Logger *slog.Logger
}

// Scheduler is the actor beside the path.
type Scheduler struct {
	cfg    Config
	pulses []Pulses // by queue
}

// Pulses tell whether the loops of one queue turn.
type Pulses struct{ Renewer, Sweeper, Pauser, Trimmer flow.Pulse }

// New makes a Scheduler.
func New(cfg Config) *Scheduler {
	return &Scheduler{cfg: cfg, pulses: make([]Pulses, len(cfg.Queues))}
}

// Pulses are those of a queue.
func (s *Scheduler) Pulses(queue int) *Pulses { return &s.pulses[queue] }

// Run works until ctx ends: after the last message was settled, as running handlers need their leases renewed
// while the pool drains.
func (s *Scheduler) Run(ctx context.Context) error {
	var group errgroup.Group
	for i := range s.cfg.Queues {
		q, pulses := &s.cfg.Queues[i], &s.pulses[i]
		if q.Book.Renews() {
			r := renewer{
				queue: q, retry: retry.New(), pulse: &pulses.Renewer,
				health: health{log: s.cfg.Logger, queue: q.Name, what: "renewing leases"},
			}
			group.Go(func() error { r.run(ctx); return nil })
		}
		w := sweeper{
			queue: q, tick: s.cfg.Tick, retry: retry.New(), pulse: &pulses.Sweeper, log: s.cfg.Logger,
			health: health{log: s.cfg.Logger, queue: q.Name, what: "sweeping"},
			audit:  newAuditor(q, s.cfg.Logger),
		}
		group.Go(func() error { w.run(ctx); return nil })
		p := pauser{
			queue: q, pulse: &pulses.Pauser,
			tick:   s.cfg.Tick / 2, // a pause right after a reserve is seen at the second look, so within a tick
			health: health{log: s.cfg.Logger, queue: q.Name, what: "looking for a pause"},
		}
		group.Go(func() error { p.run(ctx); return nil })
		if q.Limits != (flow.DeadLetterLimits{}) {
			t := trimmer{
				queue: q, tick: s.cfg.Tick, log: s.cfg.Logger, pulse: &pulses.Trimmer,
				health: health{log: s.cfg.Logger, queue: q.Name, what: "trimming dead letters"},
			}
			group.Go(func() error { t.run(ctx); return nil })
		}
	}
	return group.Wait()
}

// health logs changes of state, one line each.
type health struct {
	log         *slog.Logger
	queue, what string
	down        bool
}

func (h *health) failed(err error) {
	if !h.down {
		h.down = true
		h.log.Warn(h.what+" is held up", "queue", h.queue, "error", err)
	}
}

func (h *health) worked() {
	if h.down {
		h.down = false
		h.log.Info(h.what+" works again", "queue", h.queue)
	}
}

// pause waits before the next try, longer when only somebody's help can mend it.
func pause(ctx context.Context, loop *retry.Loop, err error) {
	if errors.Is(err, flow.ErrTransient) {
		_ = loop.Wait(ctx) // loops look at ctx themselves
		return
	}
	_ = loop.Slow(ctx)
}
