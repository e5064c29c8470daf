package pool

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/acker"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/slots"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/reserver"
	"github.com/babelpool/babelpool/router"
	"github.com/babelpool/babelpool/scheduler"
)

// The most messages one call to Redis carries, by default and at all.
const (
	reserveBatch = 256
	settleBatch  = 1000
	mostBatch    = 1000
)

// machine is a running pool: the buffer, every channel, every actor.
type machine struct {
	*plan
	reservers []*reserver.Reserver
	router    *router.Router
	ackers    []*acker.Acker
	scheduler *scheduler.Scheduler

	buffer      *flow.Buffer           // reservers → workers
	settlements []chan flow.Settlement // by queue: workers → acker
}

// run starts the actors and waits for the stop. Channels are closed in stop.go, each right after its last
// sender's Run has returned. Plain groups: one actor's end must not cancel another, least of all an acker that
// flushes.
func (p *Pool) run(ctx context.Context, pl *plan) error {
	m := p.build(pl)
	detached := context.WithoutCancel(ctx)
	calls := &limited{Context: detached}
	handlers, hardStop := context.WithCancelCause(detached) // ended by the hard stop
	flush, giveUp := context.WithCancelCause(calls)         // ended when the last settlements take too long
	aside, endAside := context.WithCancel(calls)            // ended after the last settlement
	defer hardStop(nil)
	defer giveUp(nil)
	defer endAside()

	var intake, work, settle, beside errgroup.Group
	unsettled := make([]error, len(m.ackers)) // by queue: a group would keep the first one's alone
	for i, a := range m.ackers {
		settle.Go(func() error { unsettled[i] = a.Run(flush); return nil })
	}
	work.Go(func() error { return m.router.Run(handlers) })
	beside.Go(func() error { return m.scheduler.Run(aside) })
	for _, r := range m.reservers {
		intake.Go(func() error { return r.Run(ctx) })
	}
	p.state.Store(int32(Running))
	m.Logger.Info("consuming", "queues", len(m.Queues), "concurrency", m.Concurrency, "prefetch", m.Prefetch)

	<-ctx.Done()
	p.state.Store(int32(Draining))
	err := m.stop(stopping{&intake, &work, &settle, hardStop, giveUp, calls, unsettled})
	endAside()
	_ = beside.Wait() // never fails
	return err
}

// build makes the buffer, the channels and the actors. Each has room for everything that can be in flight, so no
// actor ever waits to send.
func (p *Pool) build(pl *plan) *machine {
	n := len(pl.Queues)
	m := &machine{
		plan: pl, reservers: make([]*reserver.Reserver, n), ackers: make([]*acker.Acker, n),
		settlements: make([]chan flow.Settlement, n),
	}
	weights, counters := make([]int, n), make([]*flow.Counters, n)
	for i, q := range pl.Queues {
		weights[i], counters[i] = q.Weight, &flow.Counters{}
	}
	batch := min(orElse(pl.Batch, reserveBatch), pl.Prefetch)
	m.buffer = flow.NewBuffer(weights)
	capacity := slots.New(pl.Prefetch, pl.MaxInFlightBytes, weights)
	stores, toldOfPanic := make([]lua.Store, n), &atomic.Bool{}

	workQueues, schedules := make([]router.Queue, n), make([]scheduler.Queue, n)
	var solo *flow.Solo // of all queues: they die together
	if pl.MaxRecoveries > 0 {
		solo = flow.NewSolo()
	}
	handlerLimit := max(pl.HandlerTimeout, 0)
	for i, q := range pl.Queues {
		store := &calls{
			Store: lua.New(q.Layout, lua.Options{
				Client: pl.Client, Keys: pl.keys[i], Queue: i, RetryAfter: q.RetryAfter, MaxRecoveries: pl.MaxRecoveries,
			}),
			queue: q.Name, layout: q.Layout, counters: counters[i], tell: pl.OnCall, log: pl.Logger, failed: toldOfPanic,
		}
		stores[i] = store
		book := flow.NewBook(q.RetryAfter, !pl.DisableLeaseRenewal, handlerLimit)
		log := pl.Logger.With("layout", q.Layout.String())
		m.settlements[i] = make(chan flow.Settlement, pl.Prefetch+batch) // a lost call's messages may be more than its slots
		share := 0
		if n > 1 {
			share = capacity.Share(i)
		}
		m.reservers[i] = reserver.New(reserver.Config{
			Queue: i, Name: q.Name, Store: store, Slots: capacity, Book: book, Pause: p.pauses[i], Counters: counters[i],
			Out: m.buffer, Batch: batch, Share: share, Bytes: max(1, pl.MaxInFlightBytes/int64(n)),
			MigrationBatch: pl.MigrationBatch, PollInterval: pl.PollInterval, Logger: log,
			Solo: solo, OnPoison: func(ctx context.Context, raw string) { m.router.Refused(ctx, i, raw) },
		})
		m.ackers[i] = acker.New(acker.Config{
			Queue: i, Name: q.Name, Layout: q.Layout, Store: store, Slots: capacity, Book: book, Counters: counters[i],
			In: m.settlements[i], Batch: orElse(pl.Batch, settleBatch), Logger: log,
		})
		workQueues[i] = router.Queue{
			Name: q.Name, Layout: q.Layout, Handler: q.Handler, Book: book, Counters: counters[i],
			Out: m.settlements[i],
		}
		schedules[i] = scheduler.Queue{
			Name: q.Name, Store: store, Book: book, Counters: counters[i], LastCall: m.reservers[i].LastCall,
			Chunk: sweepChunk(pl.MigrationBatch), Lease: q.RetryAfter, Adopt: pl.AdoptOrphans && q.Layout == Legacy,
			Pause: p.pauses[i], OnPaused: m.reservers[i].Paused,
			Unstarted: func() int { return m.buffer.Len(i) },
			HandBack:  func(ctx context.Context) { m.handBackPaused(ctx, i) },
			Limits:    pl.DeadLetterLimits,
		}
	}
	m.router = router.New(router.Config{Workers: pl.Concurrency, Source: m.buffer, Queues: workQueues, Policy: pl.policy(), Logger: pl.Logger})
	m.scheduler = scheduler.New(scheduler.Config{Queues: schedules, Tick: pl.PollInterval, Logger: pl.Logger})
	p.topology.Store(&topology{
		queues: pl.Queues, counters: counters, stores: stores, loops: m.loops(), busy: m.router.Busy, slots: capacity,
		prefetch: pl.Prefetch, concurrency: pl.Concurrency, liveness: pl.LivenessLimit, readiness: pl.ReadinessLimit,
	})
	return m
}

// sweepChunk is the most a sweep moves per call: the scripts' own bound, or less where the user says so.
func sweepChunk(migrationBatch int) int {
	const most = 1000
	if migrationBatch == 0 {
		return most
	}
	return min(migrationBatch, most)
}

// within ends ctx with the cause after d, unless stop is called first.
func within(d time.Duration, end context.CancelCauseFunc, cause error) (stop func() bool) {
	return time.AfterFunc(d, func() { end(cause) }).Stop
}
