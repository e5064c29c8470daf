package modeltest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

// publisher is what both layouts publish with.
type publisher interface {
	Publish(ctx context.Context, bodies []string) error
}

func (m *machine) put(bodies []string) {
	m.wire.whole()
	m.done("publish", m.owners[0].store.(publisher).Publish(m.ctx, bodies))
	m.model.publish(bodies)
	m.ledger.published(bodies...)
}

func (m *machine) publish(t *rapid.T) {
	most := 8
	if m.big {
		most = 100
	}
	m.put(drawBodies(t, rapid.IntRange(1, most).Draw(t, "messages"), m.number))
}

func (m *machine) delay(t *rapid.T) {
	bodies := drawBodies(t, rapid.IntRange(1, 5).Draw(t, "messages"), m.number)
	messages, want := make([]lua.Delayed, len(bodies)), make([]bool, len(bodies))
	for i, body := range bodies {
		messages[i] = lua.Delayed{Delay: rapid.Int64Range(0, 6).Draw(t, "delay"), Body: body}
		if want[i] = m.zset.delay(body, messages[i].Delay); want[i] {
			m.ledger.published(body)
		}
	}
	m.wire.whole()
	got, err := m.owners[0].store.(*lua.Zset).PublishDelayed(m.ctx, messages)
	m.done("publish delayed", err)
	expect("publish delayed: added", want, got, slices.Equal(want, got))
}

// request draws what a reserve asks for.
func (m *machine) request(t *rapid.T, o *owner) flow.ReserveRequest {
	req := flow.ReserveRequest{
		Most:      rapid.IntRange(1, 10).Draw(t, "most"),
		Bytes:     rapid.SampledFrom([]int64{1 << 40, 1 << 40, 1, 60, 300}).Draw(t, "bytes"),
		Migration: rapid.SampledFrom([]int{1000, 1000, 1, 3}).Draw(t, "migration"),
		Tokens:    o.token,
	}
	if m.big {
		req.Most *= rapid.SampledFrom([]int{1, 20, 60}).Draw(t, "times")
	}
	req.FirstPop = rapid.IntRange(1, req.Most).Draw(t, "first pop")
	o.token = 0
	return req
}

// take reserves, and gives the owner what it took.
func (m *machine) take(o *owner, req flow.ReserveRequest) {
	m.wire.whole()
	res, err := o.store.Reserve(m.ctx, req)
	m.done("reserve", err)
	got := reserved{Poison: res.Poison, Moved: res.Moved, Left: res.Left, Paused: res.Paused}
	var batch []*flow.Reservation
	if res.Lease != nil {
		for i := range res.Lease.Items {
			r := &res.Lease.Items[i]
			batch = append(batch, r)
			got.Items = append(got.Items, item{r.Handle, r.Text, r.Ready()})
		}
	}
	call := token(got.Items)
	m.called(call)
	m.sameReserved(m.model.reserve(req, o.lease, call), got)
	o.held = append(o.held, batch...)
}

// called gives the token of a call its number, by which messages name it.
func (m *machine) called(call string) {
	if _, ok := m.calls[call]; !ok && m.legacy != nil {
		m.calls[call] = len(m.calls) + 1
	}
}

func (m *machine) sameReserved(want, got reserved) {
	if len(want.Poison) == 0 {
		want.Poison, got.Poison = nil, got.Poison[:len(got.Poison):len(got.Poison)]
	}
	if len(got.Poison) == 0 {
		got.Poison = nil
	}
	if cmp.Equal(want, got) {
		return
	}
	for _, r := range []*reserved{&want, &got} {
		for i := range r.Items {
			r.Items[i].Handle = m.name(r.Items[i].Handle)
		}
	}
	must(fmt.Errorf("reserved differs (-want +got):\n%s", cmp.Diff(want, got)))
}

func (m *machine) reserve(t *rapid.T, o *owner) {
	m.take(o, m.request(t, o))
}

// cutReserve loses a reserve call, before it arrives or after; the owner does not know which (B03).
func (m *machine) cutReserve(t *rapid.T, o *owner) {
	req := m.request(t, o)
	*m.wire = wire{cut: 1, after: rapid.Bool().Draw(t, "it arrives")}
	sent := time.Now()
	res, err := o.store.Reserve(m.ctx, req)
	m.broke("reserve", err)
	if m.wire.ran == 1 {
		m.model.reserve(req, o.lease, res.Call)
	}
	m.called(res.Call)
	o.lost = nil
	if res.Call != "" {
		o.lost = &lostCall{call: res.Call, sent: sent, at: m.queue.now}
	}
}

// recall looks for what a lost reserve took (B03). What was swept meanwhile is not found.
func (m *machine) recall(_ *rapid.T, o *owner) {
	m.wire.whole()
	// The clock of the test has moved in its own way since.
	sent := o.lost.sent.Add(-time.Duration(m.queue.now-o.lost.at) * time.Second)
	res, err := o.store.Recall(m.ctx, o.lost.call, sent)
	m.done("recall", err)
	var want, got []string
	for _, d := range sorted(m.legacy.deadlines) {
		if len(d.Text) >= callWidth && d.Text[:callWidth] == o.lost.call {
			want = append(want, m.name(d.Text))
		}
	}
	if res.Lease != nil {
		for i := range res.Lease.Items {
			got = append(got, m.name(res.Lease.Items[i].Handle))
			o.held = append(o.held, &res.Lease.Items[i])
		}
	}
	expect("recall", want, got, slices.Equal(want, got))
	o.lost = nil
}

// settlements draws what is done with reservations: a few outcomes in turn.
func (m *machine) settlements(t *rapid.T, batch []*flow.Reservation) []flow.Settlement {
	ops := []flow.Op{flow.Ack, flow.Ack, flow.Requeue, flow.DeadLetter, flow.Return}
	if m.zset != nil {
		ops = []flow.Op{flow.Ack, flow.Ack, flow.Release, flow.Return, flow.DeadLetter}
	}
	turns := rapid.SliceOfN(rapid.SampledFrom(ops), 1, 5).Draw(t, "outcomes")
	delay := rapid.SampledFrom([]int64{0, 1, 5}).Draw(t, "delay")
	all := make([]flow.Settlement, len(batch))
	for i, r := range batch {
		one := flow.Settlement{Reservation: r, Op: turns[i%len(turns)], Delay: delay}
		if e, ok := raised(r.Text); one.Op == flow.Requeue && ok {
			one.Text = e.String()
		} else if one.Op == flow.Requeue {
			one.Op = flow.DeadLetter // foreign
		}
		switch one.Op { //nolint:exhaustive // the others have no case here
		case flow.Return:
			one.Text = r.Ready()
		case flow.DeadLetter:
			one.Text = record(r.Text)
		}
		all[i] = one
	}
	return all
}

func putsOff(s flow.Settlement) bool { return s.Op == flow.Return }

// fewestCalls is how many calls a batch needs: in the legacy layout what is put off has calls of its own, and what is given
// twice is not sent then.
func (m *machine) fewestCalls(settled []flow.Settlement) int {
	if m.legacy == nil || !slices.ContainsFunc(settled, putsOff) {
		return (len(settled) + chunk - 1) / chunk
	}
	put, others := 0, 0
	for i, first := range firsts(settled) {
		switch {
		case !first:
		case putsOff(settled[i]):
			put++
		default:
			others++
		}
	}
	return (put+chunk-1)/chunk + (others+chunk-1)/chunk
}

// settle ends reservations. Now and then the owner does not learn the outcome and will come again with the same.
func (m *machine) settle(t *rapid.T, o *owner) {
	batch := o.draw(t, m.big)
	settled := m.settlements(t, batch)
	m.wire.whole()
	results, err := o.store.Settle(m.ctx, settled)
	m.done("settle", err)
	oneEach := m.wire.ran == m.fewestCalls(settled)
	if !oneEach {
		m.stats.twoCalls.Add(1)
	}
	m.lateChangesNothing(results)
	must(m.model.settle(settled, results, oneEach))
	m.ended(settled, results)
	if rapid.IntRange(0, 4).Draw(t, "the reply is lost") < 4 {
		o.settled(batch)
	}
}

const chunk = 1000 // values of one script call

// handBack returns reservations to the head of ready, in the order of their reservation (L9, Z11).
func (m *machine) handBack(t *rapid.T, o *owner) {
	batch := o.draw(t, m.big)
	m.wire.whole()
	results, err := o.store.HandBack(m.ctx, batch)
	m.done("hand back", err)
	m.lateChangesNothing(results)
	settled := handBacks(batch)
	must(m.model.settle(settled, results, true))
	m.ended(settled, results)
	if rapid.IntRange(0, 4).Draw(t, "the reply is lost") < 4 {
		o.settled(batch)
	}
}

// cutSettle breaks a settlement or a hand back off at one of its scripts: what the scripts before have done stays
// done, the owner learns nothing, and crashes or comes again with the same.
func (m *machine) cutSettle(t *rapid.T, o *owner) {
	batch := o.draw(t, m.big)
	back := rapid.IntRange(0, 3).Draw(t, "hand back") == 3
	settled := handBacks(batch)
	if !back {
		settled = m.settlements(t, batch)
	}
	want, sure := m.model.outcome(settled)
	if !sure {
		return // the model could not tell which of equal ones was done
	}
	*m.wire = wire{cut: rapid.IntRange(1, 2).Draw(t, "at script"), after: rapid.Bool().Draw(t, "it arrives")}
	var err error
	if back {
		_, err = o.store.HandBack(m.ctx, batch)
	} else {
		_, err = o.store.Settle(m.ctx, settled)
	}
	if err == nil { // it was done before
		must(m.model.settle(settled, want, m.wire.ran == m.fewestCalls(settled)))
		m.ended(settled, want)
		o.settled(batch)
		return
	}
	m.broke("settle", err)
	m.part(settled, want, back)
	if rapid.Bool().Draw(t, "and it crashes") {
		o.crash()
	}
}

// part gives the model what the scripts that ran have done: all of their part of the batch, but in the legacy layout
// perhaps not those that a search by token did not come across.
func (m *machine) part(settled []flow.Settlement, want []flow.Result, back bool) {
	if m.wire.ran == 0 {
		return
	}
	first, last := 0, min(len(settled), m.wire.ran*chunk)
	if back { // the last chunk goes first
		first, last = max(0, (len(settled)-1)/chunk*chunk-(m.wire.ran-1)*chunk), len(settled)
	}
	small := len(settled) < leastByToken
	if m.legacy != nil && small && m.wire.ran == 1 {
		var done []flow.Settlement
		var results []flow.Result
		for i, first := range firsts(settled) {
			if first && putsOff(settled[i]) {
				done, results = append(done, settled[i]), append(results, want[i])
			}
		}
		if len(done) > 0 { // their call goes first
			must(m.model.settle(done, results, true))
			m.ended(done, results)
			return
		}
	}
	if m.legacy == nil || back || small {
		must(m.model.settle(settled[first:last], want[first:last], true))
		m.ended(settled[first:last], want[first:last])
		return
	}
	there := map[string]float64{}
	for _, d := range m.read().Deadlines {
		there[d.Text] = d.Score
	}
	var done []flow.Settlement
	var results []flow.Result
	for i, one := range settled {
		score, ok := there[one.Reservation.Handle]
		if putsOff(one) {
			ok = score != float64(m.queue.now+one.Delay)-0.5
		}
		if m.model.leased(one.Reservation.Handle) && !ok {
			done, results = append(done, one), append(results, want[i])
		}
	}
	must(m.model.settle(done, results, false))
	m.ended(done, results)
}

const leastByToken = 32 // smaller batches are never named by tokens

func (m *machine) renew(t *rapid.T, o *owner) {
	batch := o.draw(t, m.big)
	m.wire.whole()
	got, err := o.store.Renew(m.ctx, handles(batch))
	m.done("renew", err)
	m.lateChangesNothing(got)
	want := m.model.renew(handles(batch), o.lease)
	expect("renew", want, got, slices.Equal(want, got))
}

func (m *machine) sweep(t *rapid.T, o *owner) {
	limit := rapid.SampledFrom([]int{1000, 1000, 1, 3}).Draw(t, "limit")
	m.wire.whole()
	got, err := o.store.Sweep(m.ctx, limit)
	m.done("sweep", err)
	want := m.model.sweep(limit, o.lease)
	expect("sweep", want, got, want == got)
}

// look asks for counts, which changes nothing.
func (m *machine) look(_ *rapid.T, o *owner) {
	m.wire.whole()
	audit, err := o.store.Audit(m.ctx)
	m.done("audit", err)
	want := m.model.audit()
	slices.Sort(audit.Values)
	if len(want.Values) > 100 { // the store returns so many, in their order, which the model does not know
		want.Values, audit.Values = nil, nil
	}
	expect("audit", want, audit, cmp.Equal(want, audit, equateEmpty))
	depth, err := o.store.Depth(m.ctx)
	m.done("depth", err)
	depth.Oldest = 0 // lua.TestDepth is about it
	expect("depth", m.model.depth(), depth, m.model.depth() == depth)
}

// finds tells whether an owner that waits need not block.
func (m *machine) finds(o *owner) bool {
	some := len(m.queue.ready.values) > 0
	if m.zset != nil {
		some = m.zset.notify > 0
	}
	return some && o.token == 0
}

// wait takes a token, or in the legacy layout only looks.
func (m *machine) wait(_ *rapid.T, o *owner) {
	got, err := o.store.Wait(m.ctx)
	m.done("wait", err)
	want := 0
	if m.zset != nil {
		want = 1
		m.zset.notify--
	}
	expect("wait", want, got, want == got)
	o.token = got
	m.stats.tokens.Add(int64(got))
}

func (m *machine) returnToken(_ *rapid.T, o *owner) {
	m.done("return token", o.store.ReturnToken(m.ctx))
	o.token = 0
	m.zset.notify++
	m.zset.surplus++
}
