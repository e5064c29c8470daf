package router

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
)

// Router owns the workers of a pool.
type Router struct {
	cfg      Config
	notices  *notices
	draining atomic.Bool
	left     leftovers
	refused  refusals

	mu        sync.Mutex
	group     errgroup.Group
	workers   []*worker
	alive     int           // Run until all are started, workers, and the reporter, that have neither ended nor been abandoned
	abandoned bool          // no more waiting for handlers that do not return
	ended     chan struct{} // closed when alive reaches 0
}

// New makes a Router. The source and the queues' channels are the pool's.
func New(cfg Config) *Router {
	return &Router{cfg: cfg, notices: newNotices(cfg.Logger), alive: 1, ended: make(chan struct{})}
}

// Run starts the workers and returns when each has ended, because the source has ended, or has been
// abandoned. Handlers run under ctx: ending it cancels them (ErrHardStop), it does not stop intake.
func (rt *Router) Run(ctx context.Context) error {
	rt.mu.Lock()
	rt.alive += rt.cfg.Workers
	for range rt.cfg.Workers {
		w := &worker{rt: rt, ctx: ctx}
		rt.workers = append(rt.workers, w)
	}
	for _, w := range rt.workers {
		rt.group.Go(w.run)
	}
	rt.leave()
	rt.mu.Unlock()
	<-rt.ended
	return nil
}

// Drain makes the workers start nothing more: what they still receive is kept for Leftovers.
func (rt *Router) Drain() { rt.draining.Store(true) }

// Leftovers ends the keeping and returns what was received and not started since Drain. What arrives later
// is handed back one by one.
func (rt *Router) Leftovers() []*flow.Reservation { return rt.left.take() }

// Running describes the messages whose handlers run now, for logs and errors: id and URN, no bodies.
func (rt *Router) Running() []string {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	var names []string
	for _, w := range rt.workers {
		if job := w.job.Load(); job != nil {
			names = append(names, job.String())
		}
	}
	return names
}

// Busy is the number of workers with a message in hand.
func (rt *Router) Busy() int {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	n := 0
	for _, w := range rt.workers {
		if w.job.Load() != nil {
			n++
		}
	}
	return n
}

// Abandon stops waiting for handlers that do not return. Their messages are left to their leases: a late
// outcome is a no-op (B27). It returns what Running would have.
func (rt *Router) Abandon() []string {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.abandoned = true
	var names []string
	for _, w := range rt.workers {
		if job := w.job.Load(); job != nil && !w.gone {
			job.abandon()
			w.gone = true
			names = append(names, job.String())
			rt.leave()
		}
	}
	if rt.refused.running && !rt.refused.gone {
		rt.refused.gone = true
		names = append(names, "OnError for a refused message")
		rt.leave()
	}
	return names
}

// leave counts one out. Called with the lock held.
func (rt *Router) leave() {
	rt.alive--
	if rt.alive == 0 {
		close(rt.ended)
	}
}

// exited is called by a worker's last act. When the worker did not end by itself, its handler ended the
// goroutine with runtime.Goexit, and a new one takes its place.
func (rt *Router) exited(w *worker, byItself bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	switch {
	case w.gone:
	case byItself:
		rt.leave()
	default:
		rt.group.Go(w.run)
	}
}

// job is the message a worker has in hand now.
type job struct {
	reservation *flow.Reservation
	queue       string
	delivery    atomic.Pointer[delivery.Delivery] // nil until it is decoded, and for poison
	sent        atomic.Bool                       // its settlement is with the acker; only hooks can still run
}

// String names the message without its body (B48).
func (j *job) String() string {
	d := j.delivery.Load()
	if d == nil {
		return fmt.Sprintf("an undecoded message of queue %q", j.queue)
	}
	return fmt.Sprintf("message %q (%q) of queue %q", short(d.Meta.ID, mostName), short(d.URN, mostName), j.queue)
}

// abandon makes sure that nothing of the job reaches the acker any more: it is lost, or has been sent. No
// user's code runs between the claim of the settlement and its sending, so the loop is short.
func (j *job) abandon() {
	for !j.reservation.Lose() && !j.sent.Load() && j.reservation.State() != flow.Lost {
		runtime.Gosched()
	}
}

// leftovers keeps reservations that were received after Drain, so that they go back in one batch.
type leftovers struct {
	mu    sync.Mutex
	taken bool
	items []*flow.Reservation
}

// add keeps r; it is false when take was called already.
func (l *leftovers) add(r *flow.Reservation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.taken {
		l.items = append(l.items, r)
	}
	return !l.taken
}

func (l *leftovers) take() []*flow.Reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = true
	return l.items
}
