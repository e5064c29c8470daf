package lua

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// limit of lost workers in these tests.
const mostLost = 3

// counting is the same queue with lost workers counted.
func (q *queue) counting(t testing.TB) *queue {
	t.Helper()
	return q.with(t, func(o *Options) { o.MaxRecoveries = mostLost })
}

// lost is what the hash of counts holds.
func (q *queue) lost(t testing.TB) map[string]string {
	t.Helper()
	counts, err := q.client.HGetAll(context.Background(), q.keys.Recoveries).Result()
	if err != nil {
		t.Fatalf("reading the counts: %v", err)
	}
	return counts
}

// lostIs expects the counts of n messages, each the same.
func (q *queue) lostIs(t testing.TB, n int, count string) {
	t.Helper()
	counts := q.lost(t)
	if len(counts) != n {
		t.Errorf("%d messages have a count, want %d", len(counts), n)
	}
	for field, got := range counts {
		if got != count {
			t.Errorf("the count of %s is %s, want %s", field, got, count)
		}
	}
}

// dies lets every lease run out and sweeps.
func (q *queue) dies(t testing.TB) {
	t.Helper()
	q.pass(lease)
	for q.sweep(t, 1000) == 1000 {
	}
}

// workersLost is what a reserve tells of its messages.
func workersLost(held []*flow.Reservation) []int64 {
	all := make([]int64, len(held))
	for i, r := range held {
		all[i] = r.WorkersLost()
	}
	return all
}

// alone is a request with the right to one message in its last chance.
func alone(most int) flow.ReserveRequest {
	req := everything(most)
	req.Solo = flow.NewSolo()
	return req
}

// odd are bodies of all kinds: canonical, without attempts, spaced, not of this system, with attempts elsewhere too.
func odd(layout flow.Layout) []string {
	bodies := []string{
		`{"n":1,"attempts":0}`, `{"n":2}`, `{ "attempts" : 7 , "n": 3 }`, `{"job":"App\\Jobs\\Send","attempts":0,"data":{"x":[]}}`,
		`{"data":{"attempts":5},"attempts":0,"z":1}`,
	}
	if layout == flow.Legacy {
		bodies = append(bodies, "not json \x00\xff", "",
			envelope.EncodeFrame(`{"n":4,"attempts":0}`, map[string]string{"traceparent": "x"}))
	}
	return bodies
}

// A lease that runs out raises the count of its message, whatever its body, by one, under one name for all retries; a
// reserve tells the count; the bodies stay as they are.
func TestB21LostWorkersAreCounted(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q = q.counting(t)
		bodies := odd(q.layout)
		q.publish(t, bodies...)
		for round := range mostLost {
			req := alone(100)
			var held []*flow.Reservation
			for range bodies { // in the last chance they come one by one
				held = append(held, items(q.reserve(t, req))...)
			}
			want := make([]int64, len(bodies))
			for i := range want {
				want[i] = int64(round)
			}
			if diff := cmp.Diff(want, workersLost(held)); diff != "" {
				t.Fatalf("round %d: workers lost (-want +got):\n%s", round, diff)
			}
			if got := texts(held); q.layout == flow.Legacy && !slices.Equal(bodies, got) {
				t.Errorf("bodies changed: %q", got)
			}
			q.dies(t)
			q.lostIs(t, len(bodies), fmt.Sprint(round+1))
		}
		// At the limit they are all told, and taken, so that they can be dead-lettered.
		if held := q.take(t, 100); len(held) != len(bodies) || held[0].WorkersLost() != mostLost {
			t.Errorf("%d reserved with counts %v", len(held), workersLost(held))
		}
	})
}

// A reserve sweeps, counts and tells in one call.
func TestB21ReserveCountsWhatItSweeps(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { reserveCountsWhatItSweeps(t, q) })
}

func reserveCountsWhatItSweeps(t testing.TB, q *queue) {
	t.Helper()
	q = q.counting(t)
	q.publish(t, body(1), body(1)) // equal bodies share a count
	q.take(t, 2)
	q.pass(lease)
	res := q.reserve(t, alone(10))
	if res.Lost != 1 || res.Moved != 2 {
		t.Errorf("%d counts, %d moved", res.Lost, res.Moved)
	}
	q.lostIs(t, 1, "2")
	if got := workersLost(items(res)); len(got) != 1 || got[0] != 2 || !res.Solo || res.Back != 1 {
		t.Errorf("reserved %v, solo %t, %d put back; want one of two in their last chance", got, res.Solo, res.Back)
	}
}

// Without the right to it, a message in its last chance goes to the tail of ready; with it, one is taken. Others and
// those beyond the limit are taken in any case.
func TestB21LastChanceIsTakenAlone(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { lastChanceIsTakenAlone(t, q) })
}

func lastChanceIsTakenAlone(t testing.TB, q *queue) {
	t.Helper()
	q = q.counting(t)
	q.publish(t, bodies(0, 4)...)
	for range mostLost - 1 {
		q.take(t, 4)
		q.dies(t)
	}
	q.publish(t, bodies(10, 12)...)
	res := q.reserve(t, everything(100))
	if len(items(res)) != 2 || res.Back != 4 || res.Left != 4 || res.Lost != 4 || res.Solo {
		t.Fatalf("%d reserved, answer %+v; want the two that never lost a worker", len(items(res)), res)
	}
	req := alone(100)
	res = q.reserve(t, req)
	held := items(res)
	if len(held) != 1 || res.Back != 3 || !res.Solo || held[0].Recovery.Solo != req.Solo {
		t.Fatalf("%d reserved, answer %+v; want one with the right", len(held), res)
	}
	if got := len(q.list(t, q.keys.Ready)); got != 3 {
		t.Errorf("%d are in ready, want 3", got)
	}
	if q.layout == flow.Zset {
		if got := len(q.list(t, q.keys.Notify)); got != 3 {
			t.Errorf("%d tokens, want one for each in ready (Z3)", got)
		}
	}
	// The process dies with it: now it is beyond the limit, and taken without a right.
	q.dies(t)
	counts := workersLost(q.take(t, 100))
	n := 0
	for _, c := range counts {
		if c == mostLost {
			n++
		}
	}
	if n != 1 {
		t.Errorf("reserved with counts %v; want one with %d", counts, mostLost)
	}
}

// An ack and a dead letter end the count; a return to ready, a retry and a late settlement do not.
func TestB21SettlementEndsTheCount(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { settlementEndsTheCount(t, q) })
}

func settlementEndsTheCount(t testing.TB, q *queue) {
	t.Helper()
	q = q.counting(t)
	again := flow.Settlement{Op: flow.Requeue, Text: counted(3, 1)}
	if q.layout == flow.Zset {
		again = flow.Settlement{Op: flow.Release}
	}
	q.publish(t, bodies(0, 5)...)
	q.take(t, 5)
	q.dies(t)
	held := q.take(t, 5)
	// In the legacy layout ready holds 0 to 4; equal scores stand in that order in the other as well.
	again.Reservation = held[3]
	results := q.settle(t, acks(held[0])[0], settlement(held[1], flow.DeadLetter, "record"), again)
	if diff := cmp.Diff(all(3, flow.Done), results); diff != "" {
		t.Fatal(diff)
	}
	q.lostIs(t, 3, "1")
	q.handBack(t, held[2])
	q.lostIs(t, 3, "1")
	q.dies(t) // only held[4] is still reserved
	if results := q.settle(t, acks(held[4])...); results[0] != flow.Late {
		t.Errorf("late ack: %v", results)
	}
	counts := map[string]int{}
	for _, c := range q.lost(t) {
		counts[c]++
	}
	if diff := cmp.Diff(map[string]int{"1": 2, "2": 1}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// A message that a living worker left to its lease comes back at the same second as any other, and is not counted.
func TestB21ExcusedLeaseIsNotCounted(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { excusedLeaseIsNotCounted(t, q) })
}

func excusedLeaseIsNotCounted(t testing.TB, q *queue) {
	t.Helper()
	q = q.counting(t)
	q.publish(t, bodies(0, 3)...)
	held := q.take(t, 3)
	gone := held[2]
	q.settle(t, acks(gone)...)
	mixed := []flow.Settlement{
		settlement(held[0], flow.Excuse, ""), acks(gone)[0], settlement(gone, flow.Excuse, ""),
	}
	for range 2 { // safe to send again
		if diff := cmp.Diff([]flow.Result{flow.Done, flow.Late, flow.Late}, q.settle(t, mixed...)); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
	}
	q.lostIs(t, 0, "")
	q.pass(1)
	if got, err := q.Renew(t.Context(), []string{held[0].Handle}); err != nil || got[0] != flow.Done {
		t.Errorf("a renewal that comes late: %v, %v", got, err)
	}
	q.pass(lease - 2)
	if n := q.sweep(t, 1000); n != 0 {
		t.Errorf("%d swept a second too early", n)
	}
	q.pass(1)
	if n := q.sweep(t, 1000); n != 2 {
		t.Errorf("%d swept, want 2", n)
	}
	q.lostIs(t, 1, "1") // of held[1]
	counts := workersLost(q.take(t, 2))
	if diff := cmp.Diff([]int64{1}, onlyAbove(counts, 0)); diff != "" {
		t.Errorf("told %v", counts)
	}
}

func onlyAbove(counts []int64, low int64) []int64 {
	var some []int64
	for _, c := range counts {
		if c > low {
			some = append(some, c)
		}
	}
	return some
}

// Leases that never run out, and members that are not there, are not touched by an excuse.
func TestB21ExcuseLeavesEndlessLeases(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q = q.counting(t)
		endless := q.with(t, func(o *Options) { o.RetryAfter = 0 })
		endless.publish(t, body(1))
		held := endless.take(t, 1)
		q.untouched(t, "an excuse", func() {
			if got := q.settle(t, settlement(held[0], flow.Excuse, "")); got[0] != flow.Done {
				t.Errorf("result %v", got[0])
			}
		})
	})
}

// A store that does not count knows no excuse: the router sends none there.
func TestB21ExcuseNeedsCounting(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, body(1))
		held := q.take(t, 1)
		if _, err := q.Settle(t.Context(), []flow.Settlement{settlement(held[0], flow.Excuse, "")}); !errors.Is(err, flow.ErrPermanent) {
			t.Errorf("%v, want ErrPermanent", err)
		}
	})
}

// One message has one name through all retries: attempts differ, also inside a frame.
func TestB21RetriesShareACount(t *testing.T) {
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q = q.counting(t)
		frame := envelope.EncodeFrame(`{"n":1,"attempts":9}`, map[string]string{"h": "v"})
		raised, err := envelope.RequeueEdit(frame)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(raised, "10") {
			t.Fatalf("the edit of the frame is %s", raised)
		}
		for _, value := range []string{frame, raised} {
			q.publish(t, value)
			q.take(t, 1)
			q.dies(t)
			q.do(t, "DEL", q.keys.Ready) // somebody takes it
		}
		q.lostIs(t, 1, "2")
	})
}

// What left by other hands keeps its count, so all of them end with time, and there is a bound on their number.
func TestB21CountsAreBounded(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q = q.counting(t)
		fields := make([]any, 0, 2*10_500)
		for i := range 10_500 {
			fields = append(fields, fmt.Sprintf("%040x", i), 1)
		}
		if err := q.client.HSet(t.Context(), q.keys.Recoveries, fields...).Err(); err != nil {
			t.Fatal(err)
		}
		q.publish(t, body(1))
		q.take(t, 1)
		q.dies(t)
		if n := len(q.lost(t)); n != 10_000 {
			t.Errorf("%d counts are left, want 10,000", n)
		}
		ttl, err := q.client.TTL(t.Context(), q.keys.Recoveries).Result()
		if err != nil || ttl < 24*time.Hour-time.Minute || ttl > 24*time.Hour {
			t.Errorf("the counts end in %v (%v), want a day", ttl, err)
		}
	})
}

// Counts are kept for ten leases where a day is shorter.
func TestB21CountsAreKeptForTenLeases(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q = q.with(t, func(o *Options) { o.MaxRecoveries, o.RetryAfter = mostLost, 24*time.Hour })
		q.publish(t, body(1))
		q.take(t, 1)
		q.pass(24 * 3600)
		q.sweep(t, 10)
		if ttl := q.client.TTL(t.Context(), q.keys.Recoveries).Val(); ttl < 239*time.Hour {
			t.Errorf("the counts end in %v, want ten days", ttl)
		}
	})
}

// A damaged count counts as none; it stops no script (B07).
func TestB21DamagedCounts(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q = q.counting(t)
		q.publish(t, body(1))
		q.take(t, 1)
		q.dies(t)
		for field := range q.lost(t) {
			q.do(t, "HSET", q.keys.Recoveries, field, "many")
		}
		if got := workersLost(q.take(t, 1)); len(got) != 1 || got[0] != 0 {
			t.Errorf("told %v", got)
		}
		q.dies(t)
		q.lostIs(t, 1, "1")
	})
}

// A key of another type in place of the counts is named before anything is written.
func TestB21WrongTypeOfTheCounts(t *testing.T) { // B07
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q = q.counting(t)
		q.publish(t, bodies(0, 2)...)
		held := q.take(t, 1)
		q.pass(lease)
		q.do(t, "SET", q.keys.Recoveries, "somebody else's")
		for name, call := range map[string]func() error{
			"reserve": func() error { _, err := q.Reserve(t.Context(), everything(10)); return err },
			"sweep":   func() error { _, err := q.Sweep(t.Context(), 10); return err },
		} {
			q.untouched(t, name, func() {
				err := call()
				if !errors.Is(err, flow.ErrPermanent) || !strings.Contains(fmt.Sprint(err), q.keys.Recoveries) {
					t.Errorf("%s: %v, want ErrPermanent and the key", name, err)
				}
			})
		}
		held[0].Recovery = &flow.Recovery{Workers: 1}
		if got := q.settle(t, acks(held...)...); got[0] != flow.Done {
			t.Errorf("an ack: %v; it must not fail because of a count", got[0])
		}
		leases := q.keys.Deadlines + q.keys.Reserved // the one that the layout has
		q.do(t, "SET", leases, "somebody else's")
		q.untouched(t, "an excuse", func() {
			_, err := q.Settle(t.Context(), []flow.Settlement{settlement(held[0], flow.Excuse, "")})
			if !errors.Is(err, flow.ErrPermanent) || !strings.Contains(fmt.Sprint(err), leases) {
				t.Errorf("an excuse: %v, want ErrPermanent and the key", err)
			}
		})
	})
}

// The messages of a reserve whose reply was lost are found with their counts.
func TestB21RecallTellsTheCounts(t *testing.T) { // B03
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q = q.counting(t)
		q.publish(t, body(1))
		q.take(t, 1)
		q.dies(t)
		q.publish(t, body(2))
		held := q.take(t, 2)
		res, err := q.Recall(t.Context(), held[0].Handle[:24], time.Now())
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int64{}
		for _, r := range items(res) {
			counts[r.Text] = r.WorkersLost()
		}
		if diff := cmp.Diff(map[string]int64{body(1): 1, body(2): 0}, counts); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		q.do(t, "SET", q.keys.Recoveries, "somebody else's")
		_, err = q.Recall(t.Context(), held[0].Handle[:24], time.Now())
		if !errors.Is(err, flow.ErrPermanent) || !strings.Contains(fmt.Sprint(err), q.keys.Recoveries) {
			t.Errorf("%v, want ErrPermanent and the key", err)
		}
	})
}

// A full server counts, excuses and forgets as well, and its dead letters can be trimmed.
func TestB21FullServer(t *testing.T) { // B42, B43
	t.Parallel()
	eachFull(t, func(t *testing.T, q *queue, fill func()) {
		q = q.counting(t)
		q.publish(t, bodies(0, 3)...)
		q.bury(t, "a", "b")
		held := q.take(t, 3)
		fill()
		if got := q.settle(t, settlement(held[0], flow.Excuse, "")); got[0] != flow.Done {
			t.Errorf("excuse: %v", got)
		}
		q.dies(t)
		q.lostIs(t, 2, "1")
		if got := q.settle(t, acks(q.take(t, 3)...)...); !slices.Equal(got, all(3, flow.Done)) {
			t.Errorf("acks: %v", got)
		}
		q.lostIs(t, 0, "")
		if n := q.trimmed(t, flow.DeadLetterLimits{Count: 1, Age: time.Hour, Bytes: 1 << 20}); n != 1 {
			t.Errorf("%d discarded, want 1", n)
		}
	})
}
