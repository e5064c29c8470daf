package lua

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// sweeps are the two ways by which what is due comes back: with a reserve, and without.
var sweeps = map[string]func(t *testing.T, q *queue, limit int) (moved int){
	"reserve": func(t *testing.T, q *queue, limit int) int {
		// A paused queue shows what the sweep did, before anything is reserved anew.
		q.do(t, "SET", q.keys.Paused, "1")
		defer q.do(t, "DEL", q.keys.Paused)
		return q.reserve(t, flow.ReserveRequest{Most: 1, Bytes: 1, FirstPop: 1, Migration: limit}).Moved
	},
	"sweep": func(t *testing.T, q *queue, limit int) int { return q.sweep(t, limit) },
}

// eachSweep runs a body for both ways on every backend of a layout.
func eachSweep(t *testing.T, layout flow.Layout, fn func(t *testing.T, q *queue, sweep func(limit int) int)) {
	t.Helper()
	for name, sweep := range sweeps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, layout, func(t *testing.T, q *queue) {
				fn(t, q, func(limit int) int { return sweep(t, q, limit) })
			})
		})
	}
}

// An expired value goes to the tail of ready byte for byte, attempts unchanged, at the second it is due.
func TestLegacySweepReturnsExpiredValues(t *testing.T) { // L3
	t.Parallel()
	eachSweep(t, flow.Legacy, func(t *testing.T, q *queue, sweep func(int) int) {
		odd := "{ \"attempts\" : 4,\"a\":\"\x00\xff\\/\" }"
		q.publish(t, odd, body(1), body(2))
		q.take(t, 2)
		q.pass(lease - 1)
		if moved := sweep(1000); moved != 0 {
			t.Errorf("%d moved a second before they are due", moved)
		}
		q.pass(1)
		if moved := sweep(1000); moved != 2 {
			t.Errorf("%d moved, want 2", moved)
		}
		q.expect(t, state{Ready: []string{body(2), odd, body(1)}})
	})
}

// A deadline whose value is gone, or that is none, is dropped and pushes nothing; values without deadlines and
// leases that still run stay.
func TestLegacySweepDropsDanglingDeadlines(t *testing.T) { // L3, B02
	t.Parallel()
	eachSweep(t, flow.Legacy, func(t *testing.T, q *queue, sweep func(int) int) {
		token := strings.Repeat("a", 32) + ":"
		q.fill(t, q.keys.Processing, "orphan", "expired", "running")
		q.score(t, q.keys.Deadlines,
			entry{token + "gone", start - 5}, entry{"no token", start - 4}, entry{"", start - 4},
			entry{strings.Repeat("a", 31) + ":short", start - 3}, entry{token + "expired", start},
			entry{token + "running", start + 1}, entry{token + "orphan", never})
		if moved := sweep(1000); moved != 5 {
			t.Errorf("%d deadlines removed, want 5", moved)
		}
		q.expect(t, state{
			Ready: []string{"expired"}, Processing: []string{"orphan", "running"},
			Leases: []entry{{"running", start + 1}, {"orphan", never}},
		})
	})
}

// Equal values are counted: each expired deadline returns one copy and no more.
func TestLegacySweepCountsEqualValues(t *testing.T) { // L3
	t.Parallel()
	eachSweep(t, flow.Legacy, func(t *testing.T, q *queue, sweep func(int) int) {
		for range 5 {
			q.publish(t, body(1))
		}
		q.take(t, 2)
		q.pass(10)
		q.take(t, 3)
		q.do(t, "LPOP", q.keys.Processing) // somebody damages the key
		q.pass(lease - 10)
		if moved := sweep(1000); moved != 2 {
			t.Errorf("%d moved, want 2", moved)
		}
		want := q.held(start+10+lease, body(1), body(1), body(1))
		want.Ready, want.Processing = []string{body(1), body(1)}, want.Processing[:2]
		q.expect(t, want)
		q.pass(10)
		if moved := sweep(1000); moved != 3 {
			t.Errorf("%d deadlines removed, want 3", moved)
		}
		q.expect(t, state{Ready: []string{body(1), body(1), body(1), body(1)}})
	})
}

// A call moves at most its limit, the earliest first; the caller repeats while a full chunk moved (B23).
func TestSweepLimit(t *testing.T) { // L3, Z2
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 10)...)
		q.take(t, 5)
		q.pass(1)
		q.take(t, 5)
		q.pass(lease)
		for _, want := range []int{4, 4, 2, 0} {
			if moved := q.sweep(t, 4); moved != want {
				t.Errorf("%d moved, want %d", moved, want)
			}
		}
		got := q.list(t, q.keys.Ready)
		if len(got) != 10 || !sameSet(got[:5], storedAll(q, 0, 5)) || !sameSet(got[5:], storedAll(q, 5, 10)) {
			t.Errorf("ready is %q, want the first five before the others", got)
		}
	})
}

// Delayed goes before reserved, each in score order, with one token each; the limit counts both together.
func TestZsetMigratesInScoreOrder(t *testing.T) { // Z2
	t.Parallel()
	eachSweep(t, flow.Zset, func(t *testing.T, q *queue, sweep func(int) int) {
		q.publish(t, "first")
		q.score(t, q.keys.Delayed, entry{"d3", start}, entry{"d1", start - 9}, entry{"d2", start - 1}, entry{"d4", start + 1})
		q.score(t, q.keys.Reserved, entry{"r2", start}, entry{"r1", start - 100}, entry{"r3", start + 1}, entry{"r4", never})
		if moved := sweep(4); moved != 4 {
			t.Errorf("%d moved, want 4", moved)
		}
		q.expect(t, state{
			Ready: []string{"first", "d1", "d2", "d3", "r1"}, Notify: 5,
			Delayed: entries(start+1, "d4"), Reserved: []entry{{"r2", start}, {"r3", start + 1}, {"r4", never}},
		})
		if moved := sweep(4); moved != 1 {
			t.Errorf("%d moved, want 1", moved)
		}
		q.expect(t, state{
			Ready: []string{"first", "d1", "d2", "d3", "r1", "r2"}, Notify: 6,
			Delayed: entries(start+1, "d4"), Reserved: []entry{{"r3", start + 1}, {"r4", never}},
		})
	})
}

// With leases disabled what is reserved stays, whatever its score; what is delayed does not.
func TestZsetMigratesNoReservedWithoutLease(t *testing.T) { // Z2
	t.Parallel()
	eachSweep(t, flow.Zset, func(t *testing.T, q *queue, _ func(int) int) {
		q = q.with(t, func(o *Options) { o.RetryAfter = 0 })
		q.score(t, q.keys.Delayed, entry{"d", start})
		q.score(t, q.keys.Reserved, entry{"r", start - 50})
		for name, sweep := range sweeps {
			_ = sweep(t, q, 1000)
			q.expect(t, state{Ready: []string{"d"}, Notify: 1, Reserved: entries(start-50, "r")})
			if t.Failed() {
				t.Fatalf("after %s", name)
			}
		}
	})
}

// What the reserve itself moved it can reserve in the same call, behind what stood in ready.
func TestReserveTakesWhatItMoved(t *testing.T) { // L3, Z2
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, body(1))
		q.take(t, 1)
		q.publish(t, body(2))
		q.pass(lease)
		res := q.reserve(t, everything(10))
		want := []string{body(2), body(1)} // attempts unchanged: recovery charges nothing here
		if q.layout == flow.Zset {
			want = []string{counted(2, 1), counted(1, 2)} // recovery counts (A1)
		}
		if diff := cmp.Diff(want, texts(items(res))); diff != "" || res.Moved != 1 {
			t.Errorf("moved %d; reserved differ (-want +got):\n%s", res.Moved, diff)
		}
	})
}

// A request may forbid moving; then only ready is looked at.
func TestReserveWithoutMoving(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, body(1))
		q.take(t, 1)
		q.pass(lease)
		req := everything(10)
		req.Migration = 0
		if res := q.reserve(t, req); res.Moved != 0 || res.Lease != nil {
			t.Errorf("answer %+v", res)
		}
	})
}

// storedAll are the stored forms of body(from) to body(to-1).
func storedAll(q *queue, from, to int) []string {
	var all []string
	for n := from; n < to; n++ {
		all = append(all, q.stored(n))
	}
	return all
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
