package modeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

const start = 1_749_132_727 // of the clock, which shows half a second more: floor(now) is not now (L2, Z1)

// rig is what the sequences of a round share.
type rig struct {
	ctx    context.Context
	layout flow.Layout
	client *redis.Client // the stores' client, with the wire
	aside  *redis.Client // the machine's own
	wire   *wire
	prefix string
	bigs   int // one sequence in so many is big: enough in flight for every way to settle
	stats  *stats
}

// stats count what a round did, so that a machine that has gone idle is noticed.
type stats struct {
	sequences, calls, late, repeated, missing, stayed, cut, tokens, twoCalls, big atomic.Int64
}

// machine is one sequence.
type machine struct {
	*rig
	keys   lua.Keys
	clock  *atomic.Int64
	model  model
	legacy *legacy // the model, in its layout
	zset   *zset
	queue  *queue // of the model
	ledger *ledger
	owners []*owner
	big    bool
	fresh  int            // last number that no other body has
	calls  map[string]int // tokens of reserve calls, in their order
	got    state          // as last read
}

// broken unwinds a sequence that has found something.
type broken struct{ err error }

// must stops the sequence at an error.
func must(err error) {
	if err != nil {
		panic(broken{err})
	}
}

// sequence draws a sequence and runs it. An error says what is wrong with the stores.
func (g *rig) sequence(t *rapid.T) (err error) {
	defer func() {
		if r := recover(); r != nil {
			b, ok := r.(broken)
			if !ok {
				panic(r)
			}
			err = b.err
		}
	}()
	m := g.machine(t)
	defer m.close()
	actions := m.actions()
	t.Repeat(map[string]func(*rapid.T){
		"":     func(*rapid.T) { m.check() },
		"call": func(t *rapid.T) { m.step(t, actions) },
	})
	g.stats.sequences.Add(1)
	return nil
}

func (g *rig) machine(t *rapid.T) *machine {
	m := &machine{rig: g, clock: new(atomic.Int64), ledger: newLedger(), fresh: 1000, calls: map[string]int{}}
	m.clock.Store(start)
	override := ""
	if g.layout == flow.Zset && rapid.IntRange(0, 3).Draw(t, "dead letter key of its own") == 3 {
		override = g.prefix + "buried"
	}
	var err error
	m.keys, err = lua.NewKeys(g.layout, g.prefix, "orders", override)
	must(err)
	if g.layout == flow.Zset {
		m.zset = newZset(start, override == "")
		m.model, m.queue = m.zset, &m.zset.queue
	} else {
		m.legacy = newLegacy(start)
		m.model, m.queue = m.legacy, &m.legacy.queue
	}
	for _, lease := range rapid.SliceOfN(rapid.SampledFrom([]int64{2, 5, 5, 30, 0}), 1, 3).Draw(t, "leases of the owners") {
		m.owners = append(m.owners, &owner{lease: lease, store: lua.New(g.layout, lua.Options{
			Client: g.client, Keys: m.keys, RetryAfter: time.Duration(lease) * time.Second,
			Now: func() string { return strconv.FormatInt(m.clock.Load(), 10) + ".5" },
		})})
	}
	g.wire.whole()
	must(wipe(g.ctx, g.aside, m.keys))
	if rapid.IntRange(1, g.bigs).Draw(t, "big") == g.bigs {
		m.enlarge(t)
	}
	return m
}

// enlarge puts many messages in flight. Some settlements find their values by other ways there than in a short list.
func (m *machine) enlarge(t *rapid.T) {
	m.big = true
	m.stats.big.Add(1)
	sizes := []int{560, 700}
	if m.bigs < 10 { // a real server
		sizes = []int{560, 700, 1300, 2300}
	}
	bodies := drawBodies(t, rapid.SampledFrom(sizes).Draw(t, "messages"), m.number)
	m.put(bodies)
	for range 2 * len(m.owners) {
		for _, o := range m.owners {
			n := len(bodies)/len(m.owners)/2 + 1
			m.take(o, flow.ReserveRequest{Most: n, Bytes: 1 << 40, FirstPop: n, Migration: 1000})
		}
	}
}

// number makes a number that no other body has.
func (m *machine) number() int { m.fresh++; return m.fresh }

func (m *machine) close() {
	for _, o := range m.owners {
		o.store.Close()
	}
	m.wire.whole()
	_ = wipe(m.ctx, m.aside, m.keys) // what hinders it hinders the next sequence too
}

// read reads all keys; the machine alone changes them, so it may be asked often.
func (m *machine) read() state {
	got, err := read(m.ctx, m.aside, m.keys)
	must(err)
	m.got = got
	return got
}

// check compares all keys with the model, and counts the messages.
func (m *machine) check() {
	got := m.read()
	must(m.model.compare(got, m.name))
	must(m.ledger.check(got))
}

// name makes a member readable, and equal in all runs of one sequence: the token of a call is its number.
func (m *machine) name(text string) string {
	if n, ok := m.calls[text[:min(len(text), callWidth)]]; ok {
		return fmt.Sprintf("<call %d>%s", n, text[callWidth:])
	}
	return text
}

const callWidth = 24 // hex digits of a token that are of the call (L2)

// expect stops the sequence where an answer is not the model's.
func expect[T any](what string, want, got T, same bool) {
	if !same {
		must(fmt.Errorf("%s: got %+v, want %+v", what, got, want))
	}
}

// done stops the sequence at an error of a call, and counts the call.
func (m *machine) done(what string, err error) {
	m.stats.calls.Add(1)
	if err != nil {
		must(fmt.Errorf("%s: %w", what, err))
	}
}

// broke stops the sequence unless a call broke off at the wire as it was to.
func (m *machine) broke(what string, err error) {
	m.stats.calls.Add(1)
	m.stats.cut.Add(1)
	if !errors.Is(err, flow.ErrAmbiguous) {
		must(fmt.Errorf("%s: a lost reply came out as %w", what, err))
	}
}

// ended counts acks and results.
func (m *machine) ended(batch []flow.Settlement, results []flow.Result) {
	first := firsts(batch)
	for i, one := range batch {
		if !first[i] {
			m.stats.repeated.Add(1)
		}
		switch results[i] {
		case flow.Done:
			if one.Op == flow.Ack {
				m.ledger.acked(one.Reservation.Text)
			}
		case flow.Late:
			m.stats.late.Add(1)
		case flow.Missing:
			m.stats.missing.Add(1)
		case flow.Stayed:
			m.stats.stayed.Add(1)
		}
	}
}

// lateChangesNothing holds the rule by itself, without the model: a call that is late in all it asks for leaves every
// key as it was (L4, L8, Z4, Z10).
func (m *machine) lateChangesNothing(results []flow.Result) {
	if len(results) == 0 || slices.ContainsFunc(results, func(r flow.Result) bool { return r != flow.Late }) {
		return
	}
	before := m.got
	if after := m.read(); !before.same(after) {
		must(errors.New("a late call has changed something"))
	}
}

// token is what the handles of a call begin with; a call that took nothing has none to see.
func token(items []item) string {
	if len(items) == 0 || len(items[0].Handle) < callWidth {
		return strings.Repeat("0", callWidth)
	}
	return items[0].Handle[:callWidth]
}
