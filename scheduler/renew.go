package scheduler

import (
	"context"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/retry"
)

// mostRenewed is the most messages one call renews, unless one lease alone holds more.
const mostRenewed = 1000

// renewer keeps the leases of one queue's messages from running out (L8, Z10).
type renewer struct {
	queue  *Queue
	retry  *retry.Loop
	pulse  *flow.Pulse
	health health
	held   []flow.Held
}

func (r *renewer) run(ctx context.Context) {
	defer r.pulse.Rest()
	for ctx.Err() == nil {
		due, wait := r.queue.Book.Due(time.Now())
		if len(due) == 0 {
			r.await(ctx, wait)
			continue
		}
		for len(due) > 0 && ctx.Err() == nil {
			r.pulse.Beat()
			var err error
			if due, err = r.renew(ctx, due); err != nil {
				r.health.failed(err)
				pause(ctx, r.retry, err)
				break // what is due by now, oldest first
			}
			r.retry.Reset()
			r.health.worked()
		}
	}
}

// await waits until the next lease is due, or one is added that is due before it; with none, until there is one.
func (r *renewer) await(ctx context.Context, wait time.Duration) {
	r.pulse.Rest()
	var due <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-r.queue.Book.Wake():
	case <-ctx.Done():
	}
}

// renew makes one call for the oldest of the due leases and returns the rest.
func (r *renewer) renew(ctx context.Context, due []*flow.Lease) (rest []*flow.Lease, err error) {
	now := time.Now()
	r.held = r.held[:0]
	n := 0
	for n < len(due) && (n == 0 || len(r.held)+len(due[n].Items) <= mostRenewed) {
		r.held = r.queue.Book.Renewable(due[n], now, r.held)
		n++
	}
	if len(r.held) > 0 {
		handles := make([]string, len(r.held))
		for i, h := range r.held {
			handles[i] = h.Handle
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		results, err := r.queue.Store.Renew(call, handles)
		if err != nil {
			return nil, err
		}
		for i, result := range results {
			if result != flow.Done {
				r.held[i].Reservation.Lose()
				continue
			}
			r.queue.Counters.Renewed.Add(1)
		}
	}
	for _, l := range due[:n] {
		r.queue.Book.Renewed(l, now)
	}
	clear(r.held)
	return due[n:], nil
}
