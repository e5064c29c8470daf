package pool

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/slots"
	"github.com/babelpool/babelpool/lua"
)

// Pool consumes queues. Make one with New; Run it once.
type Pool struct {
	cfg      Config
	ran      atomic.Bool
	state    atomic.Int32             // a State; written by Run
	pauses   []*flow.Pause            // by queue
	topology atomic.Pointer[topology] // while and after it runs
}

// topology is what Stats, Health and Depths read.
type topology struct {
	queues      []Queue
	counters    []*flow.Counters
	stores      []lua.Store
	loops       []loop
	busy        func() int // workers with a message in hand
	slots       *slots.Pool
	prefetch    int
	concurrency int
	liveness    time.Duration // limits of the plan
	readiness   time.Duration
}

// New makes a Pool. It only stores the config; Run checks it.
func New(cfg Config) *Pool {
	p := &Pool{cfg: cfg, pauses: make([]*flow.Pause, len(cfg.Queues))}
	for i := range p.pauses {
		p.pauses[i] = &flow.Pause{}
	}
	return p
}

// Run consumes until ctx ends, then drains: intake stops, messages nobody started go back to the head of
// their queues, running handlers finish, settlements are flushed. It returns nil after a clean drain.
//
// Before it starts it returns ErrConfig for an invalid config and ErrRefused when Redis refuses the client.
// While it runs, Redis faults and bad messages never end it (R1). At the end it returns ErrAbandoned when
// handlers did not return, and an error when settlements could not be carried out; the messages concerned
// come back when their leases run out.
func (p *Pool) Run(ctx context.Context) error {
	if !p.ran.CompareAndSwap(false, true) {
		return ErrRunTwice
	}
	defer p.state.Store(int32(Stopped))
	pl, err := newPlan(p.cfg)
	if err != nil {
		return err
	}
	pl.warn()
	if err := pl.greet(ctx); err != nil {
		return err
	}
	return p.run(ctx, pl)
}
