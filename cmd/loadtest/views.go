package main

import "time"

// publishingView shows the publishing of -prefill.
func (t *trial) publishingView() view {
	v := view{verb: "published", done: t.books.stored.Load(), total: t.cfg.messages}
	t.setFraction(&v)
	return v
}

// consumingView shows the consumption, with the publishing beside it if there is any.
func (t *trial) consumingView() view {
	v := view{verb: "settled", done: t.settled.Load(), total: t.cfg.messages}
	if t.publishingEnded.Load() || t.cfg.duration > 0 {
		// Fewer than asked for after an interrupt. Those whose publish is in doubt may be there as well.
		v.total = max(t.books.stored.Load(), v.done)
	}
	t.setFraction(&v)
	return v
}

// setFraction says how much of the phase is over. With -duration the clock counts while messages are
// published, as far as they are settled, so that the bar never goes back when it stops counting.
func (t *trial) setFraction(v *view) {
	if v.total > 0 {
		v.fraction = min(1, float64(v.done)/float64(v.total))
	}
	if t.cfg.duration == 0 || t.publishingEnded.Load() {
		return
	}
	v.open = true
	began := time.Duration(t.publishBegan.Load())
	if began == 0 {
		v.fraction, v.least = 0, t.cfg.duration
		return
	}
	passed := t.clock.now() - began
	v.least = max(0, t.cfg.duration-passed)
	share := min(1, float64(passed)/float64(t.cfg.duration))
	if v.total > 0 {
		share *= min(1, float64(v.done)/float64(v.total))
	}
	v.fraction = share
}
