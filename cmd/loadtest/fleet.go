package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// fleetPatience is how long processes may take to drain and end: a pool's own limits, and some more.
const fleetPatience = time.Minute

// fleet consumes with processes that each have a pool of their own. It is a consumer.
type fleet struct {
	members []*member
	took    *latencies // where the processes' latencies are put together
}

// newFleet prepares the processes; none is started yet.
func newFleet(o order, shared *sharedMemory, took *latencies, stderr io.Writer) *fleet {
	f := &fleet{took: took}
	for i := range o.Of {
		o.Number = i + 1
		f.members = append(f.members, newMember(o, shared.file, stderr))
	}
	return f
}

// run starts the processes and waits for all of them. The first that dies or refuses ends the others: they
// drain.
func (f *fleet) run(ctx context.Context, begin func()) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	var ready sync.WaitGroup
	ready.Add(len(f.members))
	errs := make([]error, len(f.members)+1)
	var g errgroup.Group
	for i, m := range f.members {
		g.Go(func() error {
			isReady := sync.OnceFunc(ready.Done)
			defer isReady() // nobody waits for one that will never be
			if errs[i] = m.run(life, isReady); errs[i] != nil {
				end()
			}
			return nil
		})
	}
	ready.Wait()
	if ctx.Err() == nil {
		begin()
		f.tell(command{Go: true})
	}
	<-ctx.Done()
	f.tell(command{Stop: true})
	impatient := time.AfterFunc(fleetPatience, kill)
	defer impatient.Stop()
	_ = g.Wait() // the errors are kept apart, because all of them are told
	for _, m := range f.members {
		if err := m.addTo(f.took); err != nil {
			errs[len(f.members)] = err
		}
	}
	return errors.Join(errs...)
}

func (f *fleet) tell(c command) {
	for _, m := range f.members {
		m.tell(c)
	}
}

// counts is the sum of what the processes have told.
func (f *fleet) counts() counts {
	var sum counts
	for _, m := range f.members {
		sum = sum.plus(m.latest().Counts)
	}
	return sum
}

func (f *fleet) processes() []processStats {
	var all []processStats
	for _, m := range f.members {
		n := m.latest()
		all = append(all, processStats{n.Counts.Acked, n.CPU, n.CPUKnown})
	}
	return all
}
