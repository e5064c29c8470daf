package modeltest

import (
	"errors"
	"math"
	"slices"

	"github.com/babelpool/babelpool/internal/flow"
)

// zset is the model of the layout compatible with Laravel's.
type zset struct {
	queue
	delayed, reserved  map[string]float64
	notify, deadNotify int
	tokens             bool // dead letters get notify tokens (D1)
	surplus            int  // tokens that may be too many until the next reserve
}

func newZset(now int64, tokens bool) *zset {
	return &zset{
		queue: queue{now: now}, delayed: map[string]float64{}, reserved: map[string]float64{}, tokens: tokens,
	}
}

func (m *zset) leased(handle string) bool { _, ok := m.reserved[handle]; return ok }

func (m *zset) publish(bodies []string) { // Z1
	m.ready.push(bodies...)
	m.notify += len(bodies)
}

// delay publishes with a delay: one copy of the same bytes at a time (Z1).
func (m *zset) delay(body string, seconds int64) bool {
	if _, ok := m.delayed[body]; ok {
		return false
	}
	m.delayed[body] = float64(m.now + seconds)
	return true
}

// sweep promotes what is due of delayed, then of reserved (Z2).
func (m *zset) sweep(limit int, lease int64) int {
	moved := m.due(m.delayed, limit)
	for _, text := range moved {
		delete(m.delayed, text)
	}
	if lease > 0 {
		expired := m.due(m.reserved, limit-len(moved))
		for _, text := range expired {
			delete(m.reserved, text)
		}
		moved = append(moved, expired...)
	}
	m.publish(moved)
	return len(moved)
}

func (m *zset) reserve(req flow.ReserveRequest, lease int64, _ string) reserved { // Z3
	r := reserved{Moved: m.sweep(req.Migration, lease), Paused: m.paused, Left: len(m.ready.values)}
	if m.paused {
		return r
	}
	bodies := m.pop(req)
	var spoiled []string // twins that cannot be raised; the script buries them after the others
	for _, body := range bodies {
		e, ok := raised(body)
		if !ok {
			r.Poison = append(r.Poison, body)
			continue
		}
		for m.leased(e.String()) && e.number <= mostAttempts { // a twin
			e.number++
		}
		if e.number > mostAttempts {
			spoiled = append(spoiled, body)
			continue
		}
		m.reserved[e.String()] = m.expiry(lease)
		r.Items = append(r.Items, item{e.String(), e.String(), body})
	}
	r.Poison = append(r.Poison, spoiled...)
	m.bury(r.Poison...)
	r.Left = len(m.ready.values)
	m.notify = min(m.notify-min(m.notify, max(0, len(bodies)-req.Tokens)), r.Left)
	m.surplus = 0
	return r
}

func (m *zset) bury(texts ...string) {
	m.dead.push(texts...)
	if m.tokens {
		m.deadNotify += len(texts)
	}
}

func (m *zset) outcome(batch []flow.Settlement) (results []flow.Result, sure bool) { // Z4, Z5
	results, first, coming := make([]flow.Result, len(batch)), firsts(batch), map[string]bool{}
	for i, one := range batch {
		text, waits := destination(one)
		_, there := m.delayed[text]
		switch {
		case !first[i] || !m.leased(one.Reservation.Handle):
			results[i] = flow.Late
		case waits && (there || coming[text]):
			results[i] = flow.Stayed
		case waits:
			coming[text] = true
		}
	}
	return results, true
}

// destination is what a settlement puts in delayed, if anything: the member itself, charged (Z5), or the text as it
// was (Z7).
func destination(one flow.Settlement) (text string, waits bool) {
	switch one.Op { //nolint:exhaustive // the others have no case here
	case flow.Release:
		return one.Reservation.Handle, true
	case flow.Return:
		return one.Text, true
	}
	return "", false
}

func (m *zset) settle(batch []flow.Settlement, results []flow.Result, _ bool) error {
	want, _ := m.outcome(batch)
	var head []string
	for i, one := range batch {
		if results[i] != want[i] {
			return wrongResult(i, one, results[i], want[i])
		}
		if results[i] != flow.Done {
			continue
		}
		delete(m.reserved, one.Reservation.Handle)
		switch one.Op { //nolint:exhaustive // the others have no case here
		case flow.HandBack: // Z11
			head = append(head, one.Reservation.Ready())
		case flow.Release, flow.Return:
			text, _ := destination(one)
			m.delayed[text] = float64(m.now + one.Delay)
		case flow.DeadLetter:
			m.bury(one.Text)
		}
	}
	m.ready.values = slices.Concat(head, m.ready.values)
	m.notify += len(head)
	return nil
}

func (m *zset) renew(handles []string, lease int64) []flow.Result {
	return m.renewal(m.reserved, handles, lease)
}

func (m *zset) audit() flow.Audit {
	a := flow.Audit{InFlight: int64(len(m.reserved)), Leases: int64(len(m.reserved))}
	for _, score := range m.reserved {
		if math.IsInf(score, 1) {
			a.Endless++
		}
	}
	return a
}

func (m *zset) depth() flow.Depth {
	return flow.Depth{
		Ready: int64(len(m.ready.values)), InFlight: int64(len(m.reserved)), Delayed: int64(len(m.delayed)),
		DeadLetters: int64(len(m.dead.values)),
	}
}

var (
	errTokens     = errors.New("there are more notify tokens than messages in ready (Z3)")
	errNotify     = errors.New("the number of notify tokens differs (Z1, Z2, Z3, Z11)")
	errDeadNotify = errors.New("the number of notify tokens of the dead letters differs (D1)")
)

func (m *zset) compare(got state, name func(string) string) error {
	err := errors.Join(
		m.ready.same("ready", got.Ready), m.dead.same("dead letters", got.Dead),
		sameSet("reserved", m.reserved, got.Reserved, name), sameSet("delayed", m.delayed, got.Delayed, name))
	if got.Notify > len(got.Ready)+m.surplus {
		err = errors.Join(err, errTokens)
	}
	if got.Notify != m.notify {
		err = errors.Join(err, errNotify)
	}
	if got.DeadNotify != m.deadNotify {
		err = errors.Join(err, errDeadNotify)
	}
	return err
}
