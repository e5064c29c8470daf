package lua

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/internal/flow"
)

// sizes are those around the most values that unpack can take, and one well beyond (B37, M1). The imitation's
// own limit is 5,114, and it is slow.
func sizes(q *queue) []int {
	if q.b.Real {
		return []int{7999, 8000, 20_000}
	}
	return []int{5115}
}

// eachSize runs a body for each size on a queue of its own keys.
func eachSize(t *testing.T, fn func(t *testing.T, q *queue, n int)) {
	t.Helper()
	eachLayout(t, func(t *testing.T, q *queue) {
		for _, n := range sizes(q) {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				keys, err := NewKeys(q.layout, q.b.Prefix, fmt.Sprint("orders", n), "")
				if err != nil {
					t.Fatal(err)
				}
				fn(t, q.with(t, func(o *Options) { o.Keys = keys }), n)
			})
		}
	})
}

// takeAll reserves everything in calls of a size the pool never exceeds by much.
func (q *queue) takeAll(t testing.TB, n int) []*flow.Reservation {
	t.Helper()
	var held []*flow.Reservation
	for len(held) < n {
		part := q.take(t, min(n-len(held), 5000))
		if len(part) == 0 {
			t.Fatalf("only %d of %d could be reserved", len(held), n)
		}
		held = append(held, part...)
	}
	return held
}

// Publish, reserve and settle of any number at once (B37).
func TestLargePublishAndSettle(t *testing.T) { // L1, L4, Z1, Z4, B37
	t.Parallel()
	eachSize(t, func(t *testing.T, q *queue, n int) {
		q.publish(t, bodies(0, n)...)
		if q.layout == flow.Zset {
			if tokens := q.state(t).Notify; tokens != n {
				t.Errorf("%d tokens, want %d", tokens, n)
			}
		}
		held := items(q.reserve(t, everything(n))) // one call, however many
		if len(held) != n || !slices.Equal(readies(held), bodies(0, n)) {
			t.Fatalf("%d reserved, want %d in order", len(held), n)
		}
		if results := q.settle(t, acks(held...)...); !slices.Equal(results, all(n, flow.Done)) {
			t.Error("not all acks were done")
		}
		q.expect(t, state{})
	})
}

// Dead letters and what goes back to the head, in chunks (B37).
func TestLargeHandBackAndDeadLetter(t *testing.T) { // L9, Z11, D3, B37
	t.Parallel()
	eachSize(t, func(t *testing.T, q *queue, n int) {
		q.publish(t, bodies(0, n)...)
		held := q.takeAll(t, n)
		if results := q.handBack(t, held...); !slices.Equal(results, all(n, flow.Done)) {
			t.Error("not all were handed back")
		}
		if !slices.Equal(q.list(t, q.keys.Ready), bodies(0, n)) {
			t.Error("ready is not what it was")
		}
		held = q.takeAll(t, n)
		batch := make([]flow.Settlement, n)
		for i, r := range held {
			batch[i] = settlement(r, flow.DeadLetter, r.Ready())
		}
		if results := q.settle(t, batch...); !slices.Equal(results, all(n, flow.Done)) {
			t.Error("not all were dead-lettered")
		}
		want := state{DeadLetters: bodies(0, n)}
		if q.layout == flow.Zset {
			want.DeadNotify = n
		}
		q.expect(t, want)
	})
}

// A large number due at once comes back call by call, in order, and each exactly once (B23, B36).
func TestLargeSweep(t *testing.T) { // L3, Z2, B37
	t.Parallel()
	eachSize(t, func(t *testing.T, q *queue, n int) {
		due := make([]entry, n)
		token := strings.Repeat("f", 24)
		want := bodies(0, n)
		for i, b := range want {
			due[i] = entry{b, start - float64(n-i)}
			if q.layout == flow.Legacy {
				due[i].Text = token + fmt.Sprintf("%08x:", i) + b
			}
		}
		if q.layout == flow.Legacy {
			q.fill(t, q.keys.Processing, want...)
			q.score(t, q.keys.Deadlines, due...)
		} else {
			q.score(t, q.keys.Delayed, due[:n/2]...)
			q.score(t, q.keys.Reserved, due[n/2:]...)
		}
		moved := 0
		for {
			part := q.sweep(t, 1000)
			moved += part
			if part < 1000 {
				break
			}
		}
		expected := state{Ready: want}
		if q.layout == flow.Zset {
			expected.Notify = n
		}
		q.expect(t, expected)
		if moved != n {
			t.Errorf("%d moved, want %d", moved, n)
		}
	})
}
