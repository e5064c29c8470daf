package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/retry"
)

// sweeper stands in for a reserver that does not call, because the pool is full or the queue is slow: expired
// leases and due messages go back to ready, where other processes take them (L3, Z2).
type sweeper struct {
	queue  *Queue
	tick   time.Duration
	retry  *retry.Loop
	pulse  *flow.Pulse
	log    *slog.Logger
	health health
	audit  *auditor
}

func (s *sweeper) run(ctx context.Context) {
	ticker := time.NewTicker(s.tick)
	defer ticker.Stop()
	defer s.pulse.Rest()
	for {
		s.pulse.Rest()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.pulse.Beat()
		// An idle reserver calls once a second and a little more.
		if time.Since(s.queue.LastCall()) > s.tick+s.tick/2 {
			s.sweep(ctx)
		} else {
			s.retry.Reset()
			s.health.worked() // the reserver sweeps again
		}
		s.audit.run(ctx)
	}
}

// sweep repeats while a full chunk moved, so that recovery keeps up with any backlog (B23).
func (s *sweeper) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		// This process's own overdue leases are renewed first, or it would give its own messages away (B12).
		s.pulse.Rest() // while Redis is away there is no renewal
		s.queue.Book.AwaitFresh(ctx)
		s.pulse.Beat()
		call, cancel := context.WithTimeout(ctx, callTimeout)
		moved, err := s.queue.Store.Sweep(call, s.queue.Chunk)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				s.health.failed(err)
				pause(ctx, s.retry, err)
			}
			return // the next tick tries again
		}
		s.retry.Reset()
		s.health.worked()
		s.queue.Counters.Moved.Add(int64(moved))
		if moved < s.queue.Chunk {
			return
		}
	}
}
