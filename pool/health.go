package pool

import (
	"fmt"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// State is where a pool stands in its life.
type State int32

// The states of a pool, in their order.
const (
	Starting State = iota // Run has not begun to consume
	Running
	Draining // Run's context has ended
	Stopped  // Run has returned
)

var stateNames = [...]string{"starting", "running", "draining", "stopped"}

// String is the state's name in a word.
func (s State) String() string { return stateNames[s] }

// Health is what a pool says of itself.
type Health struct {
	State State
	// Live is whether every loop of the pool turns. Idle, busy, full and paused are alive, and so is a pool that waits
	// for Redis or has not begun. It is false when a loop has been in one turn for longer than Config.LivenessLimit, and
	// once Run has returned: then only a new process helps.
	Live bool
	// Ready is whether the pool consumes, or is ready to. It is false before Run consumes, from the end of its context,
	// when it is not live, and while Redis has been away for longer than Config.ReadinessLimit.
	Ready bool
	// Reasons say why it is not live or not ready, one each, and name the queue and the loop.
	Reasons []string
	// Queues is how long Redis has been away, by queue, in the order of Config.Queues; nil before Run consumes.
	Queues []QueueHealth
}

// QueueHealth is how a queue's Redis fares.
type QueueHealth struct {
	Name   string
	Layout Layout
	// Away is how long Redis has not served the calls made for the queue; 0 while it does.
	Away time.Duration
}

// loop is one loop of a running pool.
type loop struct {
	queue int
	name  string
	pulse *flow.Pulse
}

// loops are all that a running pool has. Workers are none: a handler takes its time.
func (m *machine) loops() []loop {
	var all []loop
	for i := range m.Queues {
		beside := m.scheduler.Pulses(i)
		all = append(all, loop{i, "reserver", m.reservers[i].Pulse()}, loop{i, "acker", m.ackers[i].Pulse()},
			loop{i, "renewer", &beside.Renewer}, loop{i, "sweeper", &beside.Sweeper}, loop{i, "pauser", &beside.Pauser},
			loop{i, "trimmer", &beside.Trimmer})
	}
	return all
}

// Health looks at the pool's loops and at what they know of Redis; it sends nothing. Safe for concurrent use, before,
// during and after Run.
func (p *Pool) Health() Health {
	h := Health{State: State(p.state.Load()), Live: true}
	h.Ready = h.State == Running
	if !h.Ready {
		h.Reasons = append(h.Reasons, "the pool is "+h.State.String())
	}
	t := p.topology.Load()
	if t == nil || h.State == Stopped {
		h.Live = h.State != Stopped
		return h
	}
	now := time.Now()
	for _, l := range t.loops {
		if turn := l.pulse.Turn(now); turn > t.liveness {
			h.Live, h.Ready = false, false
			h.Reasons = append(h.Reasons, fmt.Sprintf("%s: the %s has been stuck for %s", named(t.queues[l.queue]), l.name, rounded(turn)))
		}
	}
	for i, q := range t.queues {
		away := t.counters[i].Away.Turn(now)
		h.Queues = append(h.Queues, QueueHealth{Name: q.Name, Layout: q.Layout, Away: away})
		if away > t.readiness {
			h.Ready = false
			h.Reasons = append(h.Reasons, fmt.Sprintf("%s: redis has been away for %s", named(q), rounded(away)))
		}
	}
	return h
}

func named(q Queue) string { return fmt.Sprintf("queue %q (%s)", q.Name, q.Layout) }

// rounded is a duration as people want to read it.
func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}
