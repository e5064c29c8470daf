package lua

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

func TestAckRemovesTheMessage(t *testing.T) { // L4, Z4
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 3)...)
		held := q.take(t, 3)
		if diff := cmp.Diff(all(2, flow.Done), q.settle(t, acks(held[0], held[2])...)); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		q.expect(t, q.held(start+lease, q.stored(1)))
		q.settle(t, acks(held[1])...)
		q.expect(t, state{})
	})
}

// A late settlement of any kind is reported and touches nothing, least of all the copy that somebody else
// holds by now.
func TestLateSettlementTouchesNothing(t *testing.T) { // L4, Z4, D3, B10
	t.Parallel()
	for _, op := range []flow.Op{flow.Ack, flow.Release, flow.Return, flow.Requeue, flow.DeadLetter} {
		t.Run(op.String(), func(t *testing.T) {
			t.Parallel()
			eachLayout(t, func(t *testing.T, q *queue) {
				if !has(q.layout, op) {
					return
				}
				lateTouchesNothing(t, q, op)
			})
		})
	}
}

// has tells whether a layout knows an operation of Settle.
func has(layout flow.Layout, op flow.Op) bool {
	if layout == flow.Zset {
		return op != flow.Requeue
	}
	return op != flow.Release
}

// lateTouchesNothing lets a lease run out, reserves the message anew, and settles the first reservation.
func lateTouchesNothing(t testing.TB, q *queue, op flow.Op) {
	t.Helper()
	q.publish(t, body(1), body(2))
	late := q.take(t, 2)
	q.pass(lease)
	q.take(t, 1) // the redelivered copy of body(1); body(2) is ready
	q.untouched(t, "a late "+op.String(), func() {
		results := q.settle(t, settlement(late[0], op, "text"), settlement(late[1], op, "other text"))
		if diff := cmp.Diff(all(2, flow.Late), results); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
	})
}

func TestSettleTwiceIsLate(t *testing.T) { // L4, Z4, B13
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 100)...)
		held := q.take(t, 100)
		q.settle(t, acks(held[40])...)
		want := all(100, flow.Done)
		want[40] = flow.Late
		if diff := cmp.Diff(want, q.settle(t, acks(held...)...)); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(all(100, flow.Late), q.settle(t, acks(held...)...)); diff != "" {
			t.Errorf("the batch sent again: results differ (-want +got):\n%s", diff)
		}
		q.expect(t, state{})
	})
}

func TestSettleOfNothing(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, body(1))
		q.untouched(t, "settling and handing back nothing", func() {
			if got := q.settle(t); len(got) != 0 {
				t.Errorf("results %v", got)
			}
			if got := q.handBack(t); len(got) != 0 {
				t.Errorf("results %v", got)
			}
		})
	})
}

func TestSettleRefusesWhatTheLayoutLacks(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, body(1))
		held := q.take(t, 1)
		for _, op := range []flow.Op{flow.Release, flow.Return, flow.Requeue, flow.HandBack, flow.Leave, flow.Forget} {
			if has(q.layout, op) && op <= flow.Requeue {
				continue
			}
			q.untouched(t, op.String(), func() {
				_, err := q.Settle(t.Context(), []flow.Settlement{{Reservation: held[0], Op: op}})
				if !errors.Is(err, flow.ErrPermanent) {
					t.Errorf("%s: %v, want ErrPermanent", op, err)
				}
			})
		}
	})
}

// A dead letter leaves the reservation in the same step; the record is what the caller gave (D2, D3).
func TestDeadLetter(t *testing.T) { // D1, D3
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { deadLetterReplacesTheReservation(t, q) })
}

func deadLetterReplacesTheReservation(t testing.TB, q *queue) {
	t.Helper()
	q.publish(t, bodies(0, 3)...)
	held := q.take(t, 3)
	results := q.settle(t, settlement(held[0], flow.DeadLetter, "record\x00\xff 0"),
		settlement(held[1], flow.Ack, ""), settlement(held[2], flow.DeadLetter, "record 2"))
	if diff := cmp.Diff(all(3, flow.Done), results); diff != "" {
		t.Errorf("results differ (-want +got):\n%s", diff)
	}
	want := state{DeadLetters: []string{"record\x00\xff 0", "record 2"}}
	if q.layout == flow.Zset {
		want.DeadNotify = 2
	}
	q.expect(t, want)
}

// A dead letter key of the user's own gets the record, raw poison too, and no token.
func TestDeadLetterKeyOfTheUsersOwn(t *testing.T) { // D1
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		own, err := NewKeys(q.layout, q.b.Prefix, "orders", q.b.Prefix+"own")
		if err != nil {
			t.Fatal(err)
		}
		q = q.with(t, func(o *Options) { o.Keys = own })
		q.publish(t, body(1), "poison")
		for _, r := range items(q.reserve(t, everything(2))) {
			q.settle(t, settlement(r, flow.DeadLetter, r.Text))
		}
		want := map[string]any{"own": []string{body(1), "poison"}}
		if q.layout == flow.Zset {
			want["own"] = []string{"poison", counted(1, 1)}
		}
		if diff := cmp.Diff(want, q.snapshot(t)); diff != "" {
			t.Errorf("keys differ (-want +got):\n%s", diff)
		}
	})
}

// 1,500 settlements of every kind in one call go out in chunks, in any order, and each does its own thing.
func TestSettleLargeMixedBatch(t *testing.T) { // L4, Z4, Z5, D3, B37
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		const n = 1500
		q.publish(t, bodies(0, n)...)
		held := q.take(t, n)
		kinds := []flow.Op{flow.Ack, flow.DeadLetter, flow.Requeue}
		if q.layout == flow.Zset {
			kinds = []flow.Op{flow.Ack, flow.DeadLetter, flow.Release, flow.Return}
		}
		rnd := rand.New(rand.NewPCG(3, 4))
		rnd.Shuffle(n, func(i, j int) { held[i], held[j] = held[j], held[i] })
		var want, got []string
		batch := make([]flow.Settlement, n)
		results := make([]flow.Result, n)
		for i, r := range held {
			op := kinds[rnd.IntN(len(kinds))]
			batch[i] = flow.Settlement{Reservation: r, Op: op, Delay: int64(i), Text: fmt.Sprintf("%s %d", op, r.Order)}
			switch {
			case i%10 == 0:
				q.settle(t, acks(r)...) // late in the batch
				results[i] = flow.Late
			case op == flow.Release:
				want = append(want, fmt.Sprintf("delayed %d %s", start+i, r.Handle))
			case op == flow.Return:
				want = append(want, fmt.Sprintf("delayed %d %s", start+i, batch[i].Text))
			case op != flow.Ack:
				want = append(want, batch[i].Text)
			}
		}
		if diff := cmp.Diff(results, q.settle(t, batch...)); diff != "" {
			t.Errorf("results differ (-want +got):\n%.2000s", diff)
		}
		s := q.state(t)
		got = append(slices.Clone(s.DeadLetters), s.Ready...)
		for _, e := range s.Delayed {
			got = append(got, fmt.Sprintf("delayed %.0f %s", e.Score, e.Text))
		}
		if !sameSet(want, got) {
			t.Errorf("%d outcomes, want %d; or they differ", len(got), len(want))
		}
		if s.Processing != nil || s.Leases != nil || s.Reserved != nil {
			t.Errorf("%d values, %d leases and %d members are left", len(s.Processing), len(s.Leases), len(s.Reserved))
		}
	})
}
