package lua

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// Twins are members that would be the same bytes: attempts is raised again until each is new (Z3).
func TestZsetTwinsInOneCall(t *testing.T) { // Z3, B05
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		const n = 300
		for range n {
			q.publish(t, body(1))
		}
		held := q.take(t, n)
		if len(held) != n || len(q.state(t).Reserved) != n {
			t.Fatalf("%d returned, %d reserved, want %d", len(held), len(q.state(t).Reserved), n)
		}
		for i, r := range held {
			if r.Text != counted(1, i+1) || r.Ready() != body(1) {
				t.Fatalf("reservation %d is %q, made of %q", i, r.Text, r.Ready())
			}
		}
		// Each has its own settlement (Z4).
		for i, result := range q.settle(t, acks(held...)...) {
			if result != flow.Done {
				t.Fatalf("ack %d: %v", i, result)
			}
		}
		q.expect(t, state{})
	})
}

func TestZsetTwinsAcrossCalls(t *testing.T) { // Z3
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		var got []string
		for range 4 {
			q.publish(t, body(1), body(2))
			got = append(got, texts(q.take(t, 2))...)
		}
		want := []string{
			counted(1, 1), counted(2, 1), counted(1, 2), counted(2, 2), counted(1, 3), counted(2, 3), counted(1, 4), counted(2, 4),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("members differ (-want +got):\n%s", diff)
		}
		// One of them was delivered twice already; its next delivery meets the twin that has the number.
		q.publish(t, counted(1, 1))
		if got := texts(q.take(t, 1)); got[0] != counted(1, 5) {
			t.Errorf("reserved %q, want the first number that is free, 5", got)
		}
		// With a twin settled, the gap may be used.
		q.do(t, "ZREM", q.keys.Reserved, counted(2, 2))
		q.publish(t, body(2))
		if got := texts(q.take(t, 1)); got[0] != counted(2, 2) {
			t.Errorf("reserved %q, want the gap at 2", got)
		}
	})
}

// Different ready texts can be raised to the same member, and attempts may stand anywhere.
func TestZsetTwinsOfDifferentTexts(t *testing.T) { // Z3, Z7
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		ready := []string{
			`{"attempts":1}`, `{}`, `{"attempts":0}`, `{"attempts":8,"a":1}`, `{"attempts":8,"a":1}`, `{"attempts":9,"a":1}`,
		}
		q.publish(t, ready...)
		held := q.take(t, 10)
		want := []string{
			`{"attempts":2}`, `{"attempts":1}`, `{"attempts":3}`, `{"attempts":9,"a":1}`, `{"attempts":10,"a":1}`,
			`{"attempts":11,"a":1}`,
		}
		if diff := cmp.Diff(want, texts(held)); diff != "" {
			t.Errorf("members differ (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(ready, readies(held)); diff != "" {
			t.Errorf("ready texts differ (-want +got):\n%s", diff)
		}
	})
}

// A twin that cannot be raised within the bound of Z3 is poison like any other; the script must not look for a
// free number for ever, as adding one to 2^53 changes nothing.
func TestZsetTwinsAtTheBound(t *testing.T) { // Z3, D1
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		const last, free = `{"attempts":9007199254740990}`, `{"n":1,"attempts":9007199254740988}`
		q.publish(t, last, free, last, "no object", last, free)
		res := q.reserve(t, everything(10))
		want := []string{`{"attempts":9007199254740991}`, `{"n":1,"attempts":9007199254740989}`, `{"n":1,"attempts":9007199254740990}`}
		if diff := cmp.Diff(want, texts(items(res))); diff != "" {
			t.Errorf("members differ (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{last, free, free}, readies(items(res))); diff != "" {
			t.Errorf("ready texts differ (-want +got):\n%s", diff)
		}
		q.publish(t, last) // across calls
		poison := append(res.Poison, q.reserve(t, everything(10)).Poison...)
		if diff := cmp.Diff([]string{"no object", last, last, last}, poison); diff != "" {
			t.Errorf("poison differs (-want +got):\n%s", diff)
		}
		s := q.state(t)
		if diff := cmp.Diff(poison, s.DeadLetters); diff != "" || s.DeadNotify != 4 || s.Notify != 0 {
			t.Errorf("%d and %d tokens; dead letters differ:\n%s", s.DeadNotify, s.Notify, diff)
		}
	})
}

// A twin gets the next number that is free above its own, also when another of the same text had to go further.
func TestZsetTwinTakesTheNextFreeNumber(t *testing.T) { // Z3
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.publish(t, counted(1, 0), counted(1, 1), counted(1, 2), counted(1, 6))
		q.take(t, 4) // 1, 2, 3 and 7 are reserved
		q.publish(t, counted(1, 6), counted(1, 0), counted(1, 0), counted(1, 6))
		want := []string{counted(1, 8), counted(1, 4), counted(1, 5), counted(1, 9)}
		if diff := cmp.Diff(want, texts(q.take(t, 4))); diff != "" {
			t.Errorf("members differ (-want +got):\n%s", diff)
		}
	})
}
