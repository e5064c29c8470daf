package modeltest

import (
	"slices"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

var equateEmpty = cmpopts.EquateEmpty()

// same compares all keys; an empty list is the same as none.
func (s state) same(other state) bool {
	return slices.Equal(s.Ready, other.Ready) && slices.Equal(s.Processing, other.Processing) &&
		slices.Equal(s.Deadlines, other.Deadlines) && slices.Equal(s.Delayed, other.Delayed) &&
		slices.Equal(s.Reserved, other.Reserved) && slices.Equal(s.Dead, other.Dead) &&
		s.Notify == other.Notify && s.DeadNotify == other.DeadNotify
}

// pass moves the clock by whole seconds, often beyond a lease.
func (m *machine) pass(t *rapid.T) {
	m.queue.now += rapid.SampledFrom([]int64{1, 1, 2, 3, 5, 6, 31}).Draw(t, "seconds")
	m.clock.Store(m.queue.now)
}

// pause turns the mark of a paused queue on or off.
func (m *machine) pause(t *rapid.T) {
	m.queue.paused = !m.queue.paused && rapid.IntRange(0, 2).Draw(t, "pause") == 2
	if m.queue.paused {
		must(m.aside.Set(m.ctx, m.keys.Paused, "1", 0).Err())
		return
	}
	must(m.aside.Del(m.ctx, m.keys.Paused).Err())
}

// peer is another consumer or a person at the keys, who knows no gates.
func (m *machine) peer(t *rapid.T) {
	if m.zset != nil {
		m.zsetPeer(t)
		return
	}
	m.legacyPeer(t)
}

func (m *machine) legacyPeer(t *rapid.T) {
	q := m.legacy
	can := []string{"damage"}
	if len(q.ready.values) > 0 {
		can = append(can, "reserve", "reserve")
	}
	if len(m.got.Processing) > 0 {
		can = append(can, "ack", "ack")
	}
	switch rapid.SampledFrom(can).Draw(t, "a peer's") {
	case "reserve": // without a deadline: an orphan (L7)
		must(m.aside.LMove(m.ctx, m.keys.Ready, m.keys.Processing, "LEFT", "RIGHT").Err())
		v := q.ready.values[0]
		q.ready.values = q.ready.values[1:]
		q.enter(v)
	case "ack": // perhaps of a value that is redelivered, or of an equal one
		v := m.got.Processing[rapid.IntRange(0, len(m.got.Processing)-1).Draw(t, "value")]
		must(m.aside.LRem(m.ctx, m.keys.Processing, 1, v).Err())
		q.leave(v)
		m.ledger.acked(v)
	case "damage": // a deadline that is none
		score := float64(q.now + rapid.Int64Range(0, 6).Draw(t, "due in"))
		must(m.aside.ZAdd(m.ctx, m.keys.Deadlines, redis.Z{Score: score, Member: "no token"}).Err())
		q.deadlines["no token"] = score
	}
}

func (m *machine) zsetPeer(t *rapid.T) {
	q := m.zset
	can := []string{"publish", "token"}
	if len(m.got.Reserved) > 0 {
		can = append(can, "ack")
	}
	switch rapid.SampledFrom(can).Draw(t, "a peer's") {
	case "publish": // without a token
		bodies := drawBodies(t, 1, m.number)
		must(m.aside.RPush(m.ctx, m.keys.Ready, bodies[0]).Err())
		q.ready.push(bodies...)
		m.ledger.published(bodies...)
	case "ack":
		one := m.got.Reserved[rapid.IntRange(0, len(m.got.Reserved)-1).Draw(t, "member")].Text
		must(m.aside.ZRem(m.ctx, m.keys.Reserved, one).Err())
		delete(q.reserved, one)
		m.ledger.acked(one)
	case "token": // one too many
		must(m.aside.RPush(m.ctx, m.keys.Notify, "1").Err())
		q.notify++
		q.surplus++
	}
}

// adopts tells whether an owner can adopt something.
func (m *machine) adopts(o *owner) bool {
	if m.legacy == nil || o.lease == 0 {
		return false
	}
	orphans, _ := m.legacy.orphans()
	return len(orphans) > 0
}

// adopt gives orphans deadlines (L7): those of the last audit, and perhaps one that is none any more.
func (m *machine) adopt(_ *rapid.T, o *owner) {
	orphans, _ := m.legacy.orphans()
	values := append(orphans[:min(len(orphans), 100)], "no orphan")
	if len(m.got.Processing) > 0 {
		values = append(values, m.got.Processing[0])
	}
	m.wire.whole()
	got, err := o.store.(*lua.Legacy).Adopt(m.ctx, values)
	m.done("adopt", err)
	adopted := m.legacy.adoptable(values)
	expect("adopt", len(adopted), got, len(adopted) == got)
	must(m.legacy.adopt(adopted, o.lease, m.read()))
}

// layouts are both.
var layouts = []flow.Layout{flow.Legacy, flow.Zset}
