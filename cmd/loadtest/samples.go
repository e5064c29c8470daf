package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	sampleEvery = 100 * time.Millisecond
	mostSamples = 600 // of a long run every other one is dropped, again and again
)

// samples are how far a run was at points in time about equally far apart.
type samples struct {
	every time.Duration
	taken []runSample
}

// runSample is one of them.
type runSample struct {
	at               time.Duration // on the run's clock
	published, acked int64
}

// tick adds a sample, unless the last one was taken not long ago.
func (s *samples) tick(one runSample) {
	if s.every == 0 {
		s.every = sampleEvery
	}
	const slack = sampleEvery / 2 // a tick comes early after a late one
	if n := len(s.taken); n > 0 && one.at-s.taken[n-1].at < s.every-slack {
		return
	}
	s.taken = append(s.taken, one)
	if len(s.taken) > mostSamples {
		kept := s.taken[:0]
		for i := 0; i < len(s.taken); i += 2 {
			kept = append(kept, s.taken[i])
		}
		s.taken, s.every = kept, 2*s.every
	}
}

// end adds the last sample. It takes the place of one that was taken just before.
func (s *samples) end(one runSample) {
	if n := len(s.taken); n > 1 && one.at-s.taken[n-1].at < s.every/2 {
		s.taken[n-1] = one
		return
	}
	s.taken = append(s.taken, one)
}

// sampled does something while samples are taken, a last one at its end.
func (t *trial) sampled(ctx context.Context, do func()) {
	take := func() runSample { return runSample{t.clock.now(), t.books.stored.Load(), t.consumer.counts().Acked} }
	sampling, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error {
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			t.samples.tick(take())
			select {
			case <-sampling.Done():
				return nil
			case <-ticker.C:
			}
		}
	})
	do()
	stop()
	_ = g.Wait() // never fails
	t.samples.end(take())
}
