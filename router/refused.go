package router

import (
	"context"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// mostRefusals is how many reports of refused bodies may wait for OnError.
const mostRefusals = 1000

// refusals are the reports of bodies that the reserve script refused, on their way to OnError. They have a
// goroutine of their own while there are any: a hook that hangs must not stop the reserver, who found them.
// Guarded by the Router's lock.
type refusals struct {
	waiting []refusal
	running bool // the reporter runs
	gone    bool // it was abandoned
}

type refusal struct {
	ctx context.Context //nolint:containedctx // travels with the report
	err error
	raw string
}

// Refused reports a body that the reserve script put in the dead letters by itself, because its attempts
// cannot be edited (Z3). The reserver found it; the reports are the router's. It does not wait for OnError.
func (rt *Router) Refused(ctx context.Context, queue int, raw string) {
	q := &rt.cfg.Queues[queue]
	q.Counters.Poison.Add(1)
	q.Counters.DeadLetter(flow.Poison)
	_, err := envelope.Decode(raw)
	if err == nil {
		err = &envelope.PoisonError{Reason: "attempts cannot be raised any further"}
	}
	rt.notices.poison(q.Name, err)
	if rt.cfg.Policy.OnError == nil {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if len(rt.refused.waiting) == mostRefusals {
		rt.notices.slowHook(q.Name)
		return
	}
	rt.refused.waiting = append(rt.refused.waiting, refusal{ctx, err, raw})
	if !rt.refused.running {
		rt.refused.running = true
		rt.alive++ // Run waits for the reports, as it does for handlers
		rt.group.Go(rt.reportRefusals)
	}
}

// reportRefusals tells OnError of what waits, in order, until there is nothing more.
func (rt *Router) reportRefusals() error {
	for {
		rt.mu.Lock()
		if len(rt.refused.waiting) == 0 || rt.refused.gone {
			rt.refused.running = false
			if !rt.refused.gone {
				rt.leave()
			}
			rt.mu.Unlock()
			return nil
		}
		next := rt.refused.waiting[0]
		rt.refused.waiting = rt.refused.waiting[1:]
		rt.mu.Unlock()
		rt.report(next.ctx, next.err, envelope.Envelope{}, next.raw)
	}
}
