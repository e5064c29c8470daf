package lua

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// The ready list gets the raised text the caller gave, at its tail; the reservation is gone.
func TestLegacyRequeue(t *testing.T) { // L6
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 4)...)
		held := q.take(t, 3)
		q.settle(t, settlement(held[1], flow.Requeue, counted(1, 1)), settlement(held[0], flow.Requeue, counted(0, 1)))
		want := q.held(start+lease, body(2))
		want.Ready = []string{body(3), counted(1, 1), counted(0, 1)}
		q.expect(t, want)
	})
}

// The lease is held, but processing lost the value: nothing is pushed, the deadline goes, and it is reported.
func TestLegacyMissingValuePushesNothing(t *testing.T) { // L4
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) { missingPushesNothing(t, q) })
}

func missingPushesNothing(t testing.TB, q *queue) {
	t.Helper()
	q.publish(t, bodies(0, 5)...)
	held := q.take(t, 5)
	for _, n := range []int{0, 1, 2} {
		q.do(t, "LREM", q.keys.Processing, 1, body(n))
	}
	results := q.settle(t, acks(held[0])[0], settlement(held[1], flow.Requeue, "requeued"),
		settlement(held[2], flow.DeadLetter, "buried"), acks(held[3])[0])
	want := []flow.Result{flow.Missing, flow.Missing, flow.Missing, flow.Done}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Errorf("results differ (-want +got):\n%s", diff)
	}
	q.expect(t, q.held(start+lease, body(4)))
	q.do(t, "DEL", q.keys.Processing)
	if got := q.handBack(t, held[4]); got[0] != flow.Missing {
		t.Errorf("hand back: %v, want missing", got[0])
	}
	q.expect(t, state{})
}

// Of equal values one copy leaves for each lease, no matter which; where fewer are left than leases, as many
// settlements are done as there were values.
func TestLegacyEqualValuesAreCounted(t *testing.T) { // L2, L4
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		for range 6 {
			q.publish(t, body(1))
		}
		q.publish(t, body(2))
		held := q.take(t, 7)
		q.settle(t, acks(held[5], held[0])...)
		q.expect(t, q.held(start+lease, body(1), body(1), body(1), body(1), body(2)))
		q.do(t, "LREM", q.keys.Processing, 2, body(1))
		batch := []flow.Settlement{acks(held[6])[0]}
		for i, text := range []string{"a", "b", "c", "d"} {
			batch = append(batch, settlement(held[1+i], flow.DeadLetter, text))
		}
		var buried []string
		for i, result := range q.settle(t, batch...) {
			if batch[i].Op == flow.DeadLetter && result == flow.Done {
				buried = append(buried, batch[i].Text)
			} else if batch[i].Op == flow.DeadLetter && result != flow.Missing {
				t.Errorf("settlement %d: %v", i, result)
			}
		}
		if len(buried) != 2 {
			t.Errorf("%d of four were done, want 2", len(buried))
		}
		q.expect(t, state{DeadLetters: buried})
	})
}

// Whatever the order and however dense the batch lies at the head of processing, exactly the settled values
// leave it and the others keep their order. Dense batches are cut off in windows, others removed one by one.
func TestLegacySettleInAnyOrder(t *testing.T) { // L4, B38
	t.Parallel()
	for name, pick := range map[string]func(rnd *rand.Rand, left []int) []int{
		"reservation order": func(_ *rand.Rand, left []int) []int { return left[:min(128, len(left))] },
		"half of the head": func(_ *rand.Rand, left []int) []int {
			var picked []int
			for i := 0; i < min(256, len(left)); i += 2 {
				picked = append(picked, left[i])
			}
			return picked
		},
		"two thirds of the head": func(rnd *rand.Rand, left []int) []int {
			var picked []int
			for _, n := range left[:min(200, len(left))] {
				if rnd.IntN(3) > 0 || len(left) < 4 {
					picked = append(picked, n)
				}
			}
			return picked
		},
		"the tail": func(_ *rand.Rand, left []int) []int { return left[max(0, len(left)-100):] },
		"at random": func(rnd *rand.Rand, left []int) []int {
			picked := slices.Clone(left)
			rnd.Shuffle(len(picked), func(i, j int) { picked[i], picked[j] = picked[j], picked[i] })
			return picked[:min(64, len(picked))]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, flow.Legacy, func(t *testing.T, q *queue) {
				const n = 700
				rnd := rand.New(rand.NewPCG(5, 6))
				// Every seventh body is equal to the one before.
				var all []string
				for i := range n {
					all = append(all, body(i-min(1, i%7/6)))
				}
				q.publish(t, all...)
				held := q.take(t, n)
				left := make([]int, n)
				for i := range left {
					left[i] = i
				}
				for len(left) > 0 {
					picked := pick(rnd, left)
					batch := make([]*flow.Reservation, len(picked))
					for i, at := range picked {
						batch[i] = held[at]
					}
					if results := q.settle(t, acks(batch...)...); slices.ContainsFunc(results, func(r flow.Result) bool { return r != flow.Done }) {
						t.Fatalf("results %v", results)
					}
					left = slices.DeleteFunc(left, func(at int) bool { return slices.Contains(picked, at) })
					want := make([]string, len(left))
					for i, at := range left {
						want[i] = all[at]
					}
					got := q.list(t, q.keys.Processing)
					if !slices.Equal(want, got) {
						t.Fatalf("%d values left in processing, want %d; or their order changed", len(got), len(want))
					}
				}
				q.expect(t, state{})
			})
		})
	}
}
