package lua

import (
	"fmt"
	"testing"

	"github.com/babelpool/babelpool/internal/flow"
)

// Each reserve takes as many notify tokens as messages, less those the waiter took, and never leaves more
// tokens than messages, whoever pushed how.
func TestZsetReserveKeepsTokensInStep(t *testing.T) { // Z3, B41
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		for i, c := range []struct {
			ready, tokens int // before
			waiter        int // tokens the wait took; they are gone from the list already
			most          int
			want          int // tokens left
		}{
			{ready: 5, tokens: 5, most: 2, want: 3},
			{ready: 5, tokens: 4, waiter: 1, most: 2, want: 3},
			{ready: 5, tokens: 5, most: 5, want: 0},
			{ready: 5, tokens: 0, most: 2, want: 0},            // pushed without tokens
			{ready: 5, tokens: 1, most: 3, want: 0},            // some with
			{ready: 5, tokens: 9, most: 2, want: 3},            // a surplus is trimmed
			{ready: 5, tokens: 9, waiter: 1, most: 1, want: 4}, // as left by consumers that do not wait
			{ready: 0, tokens: 3, most: 5, want: 0},
			{ready: 0, tokens: 0, waiter: 1, most: 5, want: 0},
			{ready: 3, tokens: 2, waiter: 1, most: 9, want: 0},
		} {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				q.do(t, "DEL", q.keys.Ready, q.keys.Notify, q.keys.Reserved)
				q.fill(t, q.keys.Ready, bodies(0, c.ready)...)
				for range c.tokens {
					q.fill(t, q.keys.Notify, "1")
				}
				req := everything(c.most)
				req.Tokens = c.waiter
				q.reserve(t, req)
				if s := q.state(t); s.Notify != c.want || s.Notify > len(s.Ready) {
					t.Errorf("%+v left %d tokens and %d messages", c, s.Notify, len(s.Ready))
				}
			})
		}
	})
}

// Poison leaves ready as messages do, so its tokens go too; what goes back over the budget keeps its token.
func TestZsetReserveTokensOfPoisonAndBudget(t *testing.T) { // Z3, B41
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.publish(t, "poison", body(1), "poison", body(2), body(3))
		q.reserve(t, flow.ReserveRequest{Most: 5, Bytes: int64(len("poison") + len(body(1)) + 1), FirstPop: 5})
		if s := q.state(t); s.Notify != 2 || len(s.Ready) != 2 || s.DeadNotify != 2 {
			t.Errorf("%d tokens, %d ready, %d dead letter tokens, want 2 of each", s.Notify, len(s.Ready), s.DeadNotify)
		}
	})
}

// The tokens follow the messages through every transition, and an empty queue has none (B41).
func TestZsetTokensThroughAMessagesLife(t *testing.T) { // Z1, Z2, Z3, Z11
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		step := func(name string, ready int) {
			t.Helper()
			if s := q.state(t); s.Notify != ready || len(s.Ready) != ready {
				t.Errorf("%s: %d tokens, %d ready, want %d of each", name, s.Notify, len(s.Ready), ready)
			}
		}
		q.publish(t, bodies(0, 4)...)
		step("publish", 4)
		held := q.take(t, 4)
		step("reserve", 0)
		q.handBack(t, held[:2]...)
		step("hand back", 2)
		q.settle(t, flow.Settlement{Reservation: held[2], Op: flow.Release, Delay: 5},
			flow.Settlement{Reservation: held[3], Op: flow.Return, Text: held[3].Ready(), Delay: 5})
		step("release and return", 2)
		q.pass(5)
		q.sweep(t, 1000)
		step("migrate", 4)
		q.take(t, 3)
		step("second reserve", 1)
		q.pass(lease)
		q.sweep(t, 1000)
		step("recovery", 4)
		q.take(t, 9)
		q.expect(t, state{Reserved: q.state(t).Reserved})
	})
}
