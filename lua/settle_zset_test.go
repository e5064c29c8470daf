package lua

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// Release puts the very member in delayed, charged once, and not raised again; Return puts the ready text there.
func TestZsetReleaseAndReturn(t *testing.T) { // Z5, Z7
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		odd := "{\"attempts\" : 41,\"a\":\"\\/\",\"n\":9007199254740993}\n"
		q.publish(t, body(0), odd, body(2), `{"m":{}}`)
		held := q.take(t, 4)
		q.pass(7)
		results := q.settle(t,
			flow.Settlement{Reservation: held[0], Op: flow.Release, Delay: 30},
			flow.Settlement{Reservation: held[1], Op: flow.Return, Delay: 0, Text: held[1].Ready()},
			flow.Settlement{Reservation: held[2], Op: flow.Release, Delay: 0},
			flow.Settlement{Reservation: held[3], Op: flow.Return, Delay: 2_592_000, Text: held[3].Ready()})
		if diff := cmp.Diff(all(4, flow.Done), results); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		const now = start + 7 // floor of the clock, exactly (Z5)
		q.expect(t, state{Delayed: []entry{
			{odd, now}, {counted(2, 1), now}, {counted(0, 1), now + 30}, {`{"m":{}}`, now + 2_592_000},
		}})
		// The next delivery counts on from what was written.
		q.sweep(t, 1000)
		want := []string{"{\"attempts\" : 42,\"a\":\"\\/\",\"n\":9007199254740993}\n", counted(2, 2)}
		if diff := cmp.Diff(want, texts(q.take(t, 9))); diff != "" {
			t.Errorf("redelivered texts differ (-want +got):\n%s", diff)
		}
	})
}

// Where delayed holds the same text already, the reservation stays and its lease brings it back.
func TestZsetReleaseOfWhatDelayedHolds(t *testing.T) { // Z5, B05
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) { stayedLosesNothing(t, q) })
}

func stayedLosesNothing(t testing.TB, q *queue) {
	t.Helper()
	q.publish(t, bodies(0, 3)...)
	held := q.take(t, 3)
	q.score(t, q.keys.Delayed, entry{held[0].Text, start + 500}, entry{held[1].Ready(), start + 600})
	results := q.settle(t,
		flow.Settlement{Reservation: held[0], Op: flow.Release, Delay: 1},
		flow.Settlement{Reservation: held[1], Op: flow.Return, Delay: 1, Text: held[1].Ready()},
		flow.Settlement{Reservation: held[2], Op: flow.Release, Delay: 1})
	want := []flow.Result{flow.Stayed, flow.Stayed, flow.Done}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Errorf("results differ (-want +got):\n%s", diff)
	}
	q.expect(t, state{
		Reserved: entries(start+lease, held[0].Text, held[1].Text),
		Delayed:  []entry{{held[2].Text, start + 1}, {held[0].Text, start + 500}, {held[1].Ready(), start + 600}},
	})
	// What stayed can still be settled otherwise.
	if got := q.settle(t, acks(held[0])...); got[0] != flow.Done {
		t.Errorf("an ack after it stayed: %v", got[0])
	}
}

// Twins returned in one batch have one ready text; delayed can hold it once, so one of them stays.
func TestZsetReturnsOfEqualTexts(t *testing.T) { // Z3, Z5, Z7
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.publish(t, body(1), body(1), body(1))
		held := q.take(t, 3)
		batch := make([]flow.Settlement, 3)
		for i, r := range held {
			batch[i] = flow.Settlement{Reservation: r, Op: flow.Return, Text: r.Ready(), Delay: int64(i)}
		}
		want := []flow.Result{flow.Done, flow.Stayed, flow.Stayed}
		if diff := cmp.Diff(want, q.settle(t, batch...)); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		q.expect(t, state{Delayed: entries(start, body(1)), Reserved: entries(start+lease, counted(1, 2), counted(1, 3))})
	})
}

// Releases of twins at one attempt count keep both: their members differ (B05).
func TestZsetReleasesOfTwins(t *testing.T) { // Z3, Z5
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.publish(t, body(1), body(1))
		held := q.take(t, 2)
		results := q.settle(t, flow.Settlement{Reservation: held[0], Op: flow.Release, Delay: 3},
			flow.Settlement{Reservation: held[1], Op: flow.Release, Delay: 3})
		if diff := cmp.Diff(all(2, flow.Done), results); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		q.expect(t, state{Delayed: entries(start+3, counted(1, 1), counted(1, 2))})
	})
}

// A late settlement stands in nobody's way: another with the same text to put in delayed is carried out.
func TestZsetLateReturnBlocksNobody(t *testing.T) { // Z4, Z7
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.publish(t, body(1), body(1))
		held := q.take(t, 2)
		q.settle(t, acks(held[0])...)
		late, good := settlement(held[0], flow.Return, body(1)), settlement(held[1], flow.Return, body(1))
		late.Delay, good.Delay = 60, 60
		if diff := cmp.Diff([]flow.Result{flow.Late, flow.Done}, q.settle(t, late, good)); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		q.expect(t, state{Delayed: entries(start+60, body(1))})
	})
}
