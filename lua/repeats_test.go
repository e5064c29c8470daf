package lua

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// A handle that comes twice in one batch is settled once: the first decides, whatever it asks for, and the others
// are late. Otherwise one message becomes two.
func TestRepeatedSettlementsAreLate(t *testing.T) { // L4, Z4, D3
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { repetitionsAreLate(t, q) })
}

// repetitionsAreLate tries every pair of operations, alone and among others, side by side and far apart.
func repetitionsAreLate(t testing.TB, q *queue) {
	t.Helper()
	var ops []flow.Op
	for _, op := range []flow.Op{flow.Ack, flow.Release, flow.Return, flow.Requeue, flow.DeadLetter} {
		if has(q.layout, op) {
			ops = append(ops, op)
		}
	}
	for _, others := range []int{0, 1, 40, 600} {
		for _, first := range ops {
			for _, second := range ops {
				for _, far := range []bool{false, true} {
					repetitionIsLate(t, q, first, second, others, far)
				}
			}
		}
	}
	repetitionIsLate(t, q, flow.Ack, ops[1], 1500, true) // in two chunks
}

// repetitionIsLate settles one message in the midst of others by two operations. In the legacy layout it does so by
// tokens, where that is done at all, and in full.
func repetitionIsLate(t testing.TB, q *queue, first, second flow.Op, others int, far bool) {
	t.Helper()
	for _, byToken := range []bool{true, false} {
		if s, ok := q.Store.(*Legacy); ok {
			s.order.full.Store(0)
			if !byToken {
				s.order.full.Store(10)
			}
		} else if byToken {
			continue
		}
		q.publish(t, bodies(0, others+1)...)
		held := q.take(t, others+1)
		at := others / 2
		one, two := settlement(held[at], first, "the first text"), settlement(held[at], second, "the second text")
		one.Delay, two.Delay = 3, 9
		batch := acks(held...)
		batch[at] = one
		want := all(others+3, flow.Done)
		behind := at + 1
		if far {
			behind = len(batch)
		}
		batch = append(slices.Insert(batch, behind, two), two)
		want[behind], want[others+2] = flow.Late, flow.Late

		name := fmt.Sprintf("%s, then %s, among %d, far %t, by token %t", first, second, others, far, byToken)
		if diff := cmp.Diff(want, q.settle(t, batch...)); diff != "" {
			t.Errorf("%s: results differ (-want +got):\n%.1000s", name, diff)
		}
		if diff := cmp.Diff(q.outcome(one), q.state(t)); diff != "" {
			t.Errorf("%s: the queue's keys differ (-want +got):\n%.1000s", name, diff)
		}
		q.clear(t)
	}
}

// outcome is what one settlement leaves of a queue that had nothing else.
func (q *queue) outcome(one flow.Settlement) state {
	switch one.Op { //nolint:exhaustive // the others have no case here
	case flow.Requeue:
		return state{Ready: []string{one.Text}}
	case flow.DeadLetter:
		s := state{DeadLetters: []string{one.Text}}
		if q.layout == flow.Zset {
			s.DeadNotify = 1
		}
		return s
	case flow.Release:
		return state{Delayed: entries(start+float64(one.Delay), one.Reservation.Text)}
	case flow.Return:
		if q.layout == flow.Legacy {
			return q.held(start+float64(one.Delay)-0.5, one.Reservation.Text)
		}
		return state{Delayed: entries(start+float64(one.Delay), one.Text)}
	}
	return state{}
}

// What is handed back twice in one call goes back once; across two chunks the one in the chunk that is sent first.
func TestRepeatedHandBacksAreLate(t *testing.T) { // L9, Z11
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { handedBackOnce(t, q) })
}

func handedBackOnce(t testing.TB, q *queue) {
	t.Helper()
	for _, n := range []int{1, 2, 50, 700} {
		q.publish(t, bodies(0, n)...)
		held := q.take(t, n)
		at := n / 2
		batch := append(slices.Insert(slices.Clone(held), at, held[at]), held[0])
		want := all(n+2, flow.Done)
		want[at+1], want[n+1] = flow.Late, flow.Late
		if diff := cmp.Diff(want, q.handBack(t, batch...)); diff != "" {
			t.Errorf("%d: results differ (-want +got):\n%.1000s", n, diff)
		}
		left := state{Ready: bodies(0, n)}
		if q.layout == flow.Zset {
			left.Notify = n
		}
		q.expect(t, left)
		q.clear(t)
	}
	q.publish(t, bodies(0, 1200)...)
	held := q.take(t, 1200)
	batch := slices.Insert(slices.Clone(held), 1001, held[999])
	want := all(1201, flow.Done)
	want[999] = flow.Late
	if diff := cmp.Diff(want, q.handBack(t, batch...)); diff != "" {
		t.Errorf("two chunks: results differ (-want +got):\n%.1000s", diff)
	}
	if ready := q.list(t, q.keys.Ready); !sameSet(bodies(0, 1200), ready) {
		t.Errorf("two chunks: %d messages are ready, or they differ", len(ready))
	}
}

// A renewal names what it likes as often as it likes.
func TestRepeatedRenewals(t *testing.T) { // L8, Z10
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, body(1), body(2))
		names := handles(q.take(t, 2))
		q.pass(5)
		if diff := cmp.Diff(all(3, flow.Done), q.renew(t, names[0], names[1], names[0])); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		q.expect(t, q.held(start+5+lease, q.stored(1), q.stored(2)))
	})
}

// A reservation that stays because delayed holds its text was decided on, so another settlement of it in the same
// batch is late, and it is in force as before.
func TestZsetRepetitionOfWhatStayed(t *testing.T) { // Z4, Z5
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.publish(t, body(1))
		held := q.take(t, 1)
		q.score(t, q.keys.Delayed, entry{held[0].Text, start + 500})
		release := flow.Settlement{Reservation: held[0], Op: flow.Release, Delay: 1}
		want := []flow.Result{flow.Stayed, flow.Late, flow.Late}
		got := q.settle(t, release, acks(held[0])[0], settlement(held[0], flow.DeadLetter, "text"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		q.expect(t, state{
			Reserved: entries(start+lease, held[0].Text), Delayed: entries(start+500, held[0].Text),
		})
	})
}

// A repetition stands in nobody's way: another with the same text to put in delayed is carried out.
func TestZsetRepetitionBlocksNobody(t *testing.T) { // Z4, Z7
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.publish(t, body(1), body(1))
		twins := q.take(t, 2)
		again, good := settlement(twins[0], flow.Return, body(1)), settlement(twins[1], flow.Return, body(1))
		again.Delay, good.Delay = 60, 70
		want := []flow.Result{flow.Done, flow.Late, flow.Done}
		if diff := cmp.Diff(want, q.settle(t, acks(twins[0])[0], again, good)); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		q.expect(t, state{Delayed: entries(start+70, body(1))})
	})
}

// What stays keeps its expiry to the bit, on a full server too, and when it never runs out.
func TestZsetWhatStaysKeepsItsExpiry(t *testing.T) { // Z5, B43
	t.Parallel()
	eachFull(t, func(t *testing.T, q *queue, fill func()) {
		if q.layout != flow.Zset {
			return
		}
		q.publish(t, body(1), body(2), body(3))
		held := q.take(t, 3)
		scores := []float64{start + 0.1, never, 9007199254740991}
		var batch []flow.Settlement
		for i, r := range held {
			q.score(t, q.keys.Reserved, entry{r.Text, scores[i]})
			q.score(t, q.keys.Delayed, entry{r.Text, start + 500})
			batch = append(batch, flow.Settlement{Reservation: r, Op: flow.Release, Delay: 1})
		}
		fill()
		q.untouched(t, "releases that stay", func() {
			if diff := cmp.Diff(all(3, flow.Stayed), q.settle(t, batch...)); diff != "" {
				t.Errorf("results differ (-want +got):\n%s", diff)
			}
		})
	})
}
