package lua

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// What nobody started goes back to the head of ready, in its order, as it was before the reserve: no attempt is
// charged. In the zset layout each gets its token back.
func TestHandBack(t *testing.T) { // L9, Z7, Z11
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		odd := "{\"attempts\" : 41,\"a\":\"\x00\xff\\/\"}"
		q.publish(t, body(0), odd, body(2), `{}`, body(4), body(5))
		held := q.take(t, 5)
		q.settle(t, acks(held[2])...)
		if diff := cmp.Diff(all(2, flow.Done), q.handBack(t, held[0], held[1])); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		want := q.held(start+lease, held[3].Text, held[4].Text)
		want.Ready = []string{body(0), odd, body(5)}
		if q.layout == flow.Zset {
			slices.SortFunc(want.Reserved, func(a, b entry) int { return len(a.Text) - len(b.Text) })
			want.Notify = 3
		}
		got := q.state(t)
		slices.SortFunc(got.Reserved, func(a, b entry) int { return len(a.Text) - len(b.Text) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the queue's keys differ (-want +got):\n%s", diff)
		}
	})
}

// Several chunks and several calls, the later ones first, leave the whole in its original order (B26).
func TestHandBackKeepsTheOrder(t *testing.T) { // L9, Z11, B37
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		const n = 2600
		q.publish(t, bodies(0, n+5)...)
		held := q.take(t, n)
		for _, part := range [][]*flow.Reservation{held[2300:], held[1500:2300], held[:1500]} {
			if diff := cmp.Diff(all(len(part), flow.Done), q.handBack(t, part...)); diff != "" {
				t.Fatalf("results differ (-want +got):\n%.1000s", diff)
			}
		}
		want := state{Ready: bodies(0, n+5)}
		if q.layout == flow.Zset {
			want.Notify = n + 5
		}
		q.expect(t, want)
	})
}

// A late one touches nothing, the others of the batch keep their order around it.
func TestHandBackLate(t *testing.T) { // L4, L9, Z11, B10
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { lateHandBackTouchesNothing(t, q) })
}

func lateHandBackTouchesNothing(t testing.TB, q *queue) {
	t.Helper()
	q.publish(t, bodies(0, 4)...)
	first := q.take(t, 2)
	q.pass(1)
	second := q.take(t, 2)
	q.settle(t, acks(first[0])...)
	q.pass(lease - 1)
	again := q.take(t, 1) // the redelivered copy of body(1)
	q.untouched(t, "a late hand back", func() {
		if diff := cmp.Diff(all(2, flow.Late), q.handBack(t, first...)); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
	})
	results := q.handBack(t, second[0], first[0], second[1], first[1], again[0])
	want := []flow.Result{flow.Done, flow.Late, flow.Done, flow.Late, flow.Done}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Errorf("results differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{body(2), body(3), again[0].Ready()}, q.list(t, q.keys.Ready)); diff != "" {
		t.Errorf("ready differs (-want +got):\n%s", diff)
	}
}

// In the legacy layout a hand back may be sent again: every member is gone by then.
func TestLegacyHandBackTwice(t *testing.T) { // L9, B03
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 3)...)
		held := q.take(t, 3)
		q.handBack(t, held...)
		q.untouched(t, "the second hand back", func() {
			if diff := cmp.Diff(all(3, flow.Late), q.handBack(t, held...)); diff != "" {
				t.Errorf("results differ (-want +got):\n%s", diff)
			}
		})
	})
}

// Twins go back as what they were, equal.
func TestZsetHandBackOfTwins(t *testing.T) { // Z3, Z7
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.publish(t, body(1), `{}`, body(1), `{"attempts":0}`)
		q.handBack(t, q.take(t, 4)...)
		q.expect(t, state{Ready: []string{body(1), `{}`, body(1), `{"attempts":0}`}, Notify: 4})
	})
}
