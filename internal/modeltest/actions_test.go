package modeltest

import (
	"slices"

	"pgregory.net/rapid"
)

// action is something that can happen to the queue. It is done by an owner that can do it; where none can, it is not drawn.
type action struct {
	name   string
	weight int
	can    func(*owner) bool
	do     func(*rapid.T, *owner)
}

// actions are all of them. rapid prefers what stands first in a list, so the rare ones do.
func (m *machine) actions() []action {
	return []action{
		{"adopt", 1, m.adopts, m.adopt},
		{"crash", 1, anybody, func(_ *rapid.T, o *owner) { o.crash() }},
		{"cut reserve", 1, anybody, m.cutReserve},
		{"cut settle", 1, busy, m.cutSettle},
		{"hand back", 1, busy, m.handBack},
		{"look", 1, anybody, m.look},
		{"pass", 2, anybody, aside(m.pass)},
		{"pause", 1, anybody, aside(m.pause)},
		{"peer", 1, anybody, aside(m.peer)},
		{"publish", 1, anybody, aside(m.publish)},
		{"publish delayed", 1, func(*owner) bool { return m.zset != nil }, aside(m.delay)},
		{"recall", 1, func(o *owner) bool { return o.lost != nil }, m.recall},
		{"renew", 1, busy, m.renew},
		{"reserve", 2, anybody, m.reserve},
		{"return token", 1, func(o *owner) bool { return o.token > 0 }, m.returnToken},
		{"settle", 3, busy, m.settle},
		{"sweep", 1, anybody, m.sweep},
		{"wait", 1, m.finds, m.wait},
	}
}

func anybody(*owner) bool { return true }

// busy is an owner with something to settle, if only once more.
func busy(o *owner) bool { return len(o.held)+len(o.past) > 0 }

// aside is an action that is none of the owners'.
func aside(do func(*rapid.T)) func(*rapid.T, *owner) { return func(t *rapid.T, _ *owner) { do(t) } }

// step draws one of the actions that can be done now, and who does it. None is drawn and then given up, which would
// count against the length of the sequence.
func (m *machine) step(t *rapid.T, actions []action) {
	var names []string
	for _, a := range actions {
		if slices.ContainsFunc(m.owners, a.can) {
			names = append(names, slices.Repeat([]string{a.name}, a.weight)...)
		}
	}
	name := rapid.SampledFrom(names).Draw(t, "action")
	a := actions[slices.IndexFunc(actions, func(a action) bool { return a.name == name })]
	var some []*owner
	for _, o := range m.owners {
		if a.can(o) {
			some = append(some, o)
		}
	}
	a.do(t, some[rapid.IntRange(0, len(some)-1).Draw(t, "owner")])
}
