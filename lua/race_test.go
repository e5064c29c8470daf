package lua

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/babelpool/babelpool/internal/flow"
)

// Several recoverers at once return each expired message exactly once (B10).
func TestConcurrentSweepers(t *testing.T) { // L3, Z2, B10
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		const n = 1000
		q.publish(t, bodies(0, n)...)
		q.takeAll(t, n)
		q.pass(lease)
		var wg sync.WaitGroup
		var moved atomic.Int64
		for range 8 {
			wg.Go(func() {
				for {
					part, err := q.Sweep(t.Context(), 37)
					if err != nil {
						t.Errorf("sweep: %v", err)
						return
					}
					moved.Add(int64(part))
					if part < 37 {
						return
					}
				}
			})
		}
		wg.Wait()
		s := q.state(t)
		if moved.Load() != n || !sameSet(s.Ready, storedAll(q, 0, n)) {
			t.Errorf("%d moved, %d ready, want %d of each, once each", moved.Load(), len(s.Ready), n)
		}
		if s.Processing != nil || s.Leases != nil || s.Reserved != nil {
			t.Errorf("%d values, %d leases and %d members are left", len(s.Processing), len(s.Leases), len(s.Reserved))
		}
	})
}

// Acks, hand backs and sweeps of the same messages at the same instant: every message is acked or ready in the
// end, never both, and never neither (B10, CONSERVE).
func TestSettlementsAgainstSweeps(t *testing.T) { // L4, Z4, R1
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		rounds := 60
		if !q.b.Real {
			rounds = 15
		}
		const n = 40
		for round := range rounds {
			var all []string
			for i := range n {
				all = append(all, body(round*n+i/2)) // every body twice: equal ones must not be confused
			}
			q.publish(t, all...)
			held := q.take(t, n)
			q.pass(lease)
			acked, back := make([]flow.Result, n), []flow.Result(nil)
			var wg sync.WaitGroup
			wg.Go(func() { // the even ones are acked one by one
				for i := 0; i < n; i += 2 {
					results, err := q.Settle(t.Context(), acks(held[i]))
					if err != nil {
						t.Errorf("settle: %v", err)
						return
					}
					acked[i] = results[0]
				}
			})
			wg.Go(func() { // the odd ones are handed back together
				var odd []*flow.Reservation
				for i := 1; i < n; i += 2 {
					odd = append(odd, held[i])
				}
				results, err := q.HandBack(t.Context(), odd)
				if err != nil {
					t.Errorf("hand back: %v", err)
				}
				back = results
			})
			wg.Go(func() {
				for {
					moved, err := q.Sweep(t.Context(), 3)
					if err != nil || moved < 3 {
						return
					}
				}
			})
			wg.Wait()
			q.sweep(t, 1000)
			if t.Failed() {
				return
			}
			done := 0
			for i := 0; i < n; i += 2 {
				if acked[i] == flow.Done {
					done++
				}
			}
			s := q.state(t)
			if len(s.Ready) != n-done || len(back) != n/2 {
				t.Fatalf("round %d: %d acked and %d ready of %d", round, done, len(s.Ready), n)
			}
			if s.Processing != nil || s.Leases != nil || s.Reserved != nil || q.layout == flow.Zset && s.Notify != len(s.Ready) {
				t.Fatalf("round %d left %+v", round, s)
			}
			q.do(t, "DEL", q.keys.Ready, q.keys.Notify)
		}
	})
}

// Several reservers of one queue share it out: each message goes to one of them.
func TestConcurrentReservers(t *testing.T) { // L2, Z3
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		const n = 2000
		q.publish(t, bodies(0, n)...)
		var wg sync.WaitGroup
		got := make([][]string, 6)
		for i := range got {
			wg.Go(func() {
				for {
					res, err := q.Reserve(t.Context(), everything(50+i))
					if err != nil {
						t.Errorf("reserve: %v", err)
						return
					}
					if res.Lease == nil {
						return
					}
					part := readies(items(res))
					if !slices.IsSortedFunc(part, func(a, b string) int { return numberOf(a) - numberOf(b) }) {
						t.Errorf("a call's messages are out of order: %q", part)
					}
					got[i] = append(got[i], part...)
				}
			})
		}
		wg.Wait()
		if all := slices.Concat(got...); !sameSet(all, bodies(0, n)) {
			t.Errorf("%d reserved, want each of %d once", len(all), n)
		}
	})
}

// numberOf is the n of body(n).
func numberOf(body string) (n int) {
	if _, err := fmt.Sscanf(body, `{"n":%d,`, &n); err != nil {
		return -1
	}
	return n
}
