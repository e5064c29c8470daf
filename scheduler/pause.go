package scheduler

import (
	"context"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// pauser hands messages back that nobody has started when the queue is paused. While messages are reserved the
// reserver hears of a pause itself; here is asked for it when the reserver does not call, as in a full pool.
type pauser struct {
	queue  *Queue
	tick   time.Duration
	pulse  *flow.Pulse
	health health
}

func (p *pauser) run(ctx context.Context) {
	ticker := time.NewTicker(p.tick)
	defer ticker.Stop()
	defer p.pulse.Rest()
	for {
		changed := p.queue.Pause.Changed() // before the look, or a change meanwhile waits for the next tick
		p.pulse.Beat()
		p.look(ctx)
		p.pulse.Rest()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-changed:
		}
	}
}

// look hands back what is there, again and again while the pause lasts: a reservation that was under way may bring more.
func (p *pauser) look(ctx context.Context) {
	if p.queue.Unstarted() == 0 {
		return
	}
	if !p.queue.Pause.Any() {
		if time.Since(p.queue.LastCall()) < p.tick {
			return
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		paused, err := p.queue.Store.Paused(call)
		if err != nil {
			if ctx.Err() == nil {
				p.health.failed(err)
			}
			return // the next tick tries again
		}
		p.health.worked()
		p.queue.OnPaused(paused)
		if !paused {
			return
		}
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p.queue.HandBack(call)
}
