package flow

import (
	"context"
	"sync"
)

// Pause is whether a queue is paused: here, by this process's API, or everywhere, by the queue's key in Redis (R6).
// The zero value is not paused. All methods are safe for concurrent use.
type Pause struct {
	mu               sync.Mutex
	here, everywhere bool
	changed          chan struct{} // closed at the next change; nil while nobody waits for one
}

// SetHere pauses or resumes this process. It reports whether that changed something.
func (p *Pause) SetHere(on bool) (changed bool) { return p.set(&p.here, on) }

// SetEverywhere notes what Redis says. It reports whether that is news.
func (p *Pause) SetEverywhere(on bool) (changed bool) { return p.set(&p.everywhere, on) }

func (p *Pause) set(flag *bool, on bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *flag == on {
		return false
	}
	*flag = on
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	return true
}

// Here reports whether this process is paused.
func (p *Pause) Here() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.here
}

// Any reports whether the queue is paused, here or everywhere.
func (p *Pause) Any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.here || p.everywhere
}

// Changed is closed at the next change.
func (p *Pause) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// AwaitHere blocks while this process is paused, until ctx ends.
func (p *Pause) AwaitHere(ctx context.Context) {
	for {
		changed := p.Changed() // before the look, or a change between the two is missed
		if !p.Here() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
