package lua

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/flow"
)

// scattered is a queue with this many messages in flight, reserved by several calls.
func scattered(t testing.TB, q *queue, bodies []string) (held []*flow.Reservation) {
	t.Helper()
	q.publish(t, bodies...)
	for len(held) < len(bodies) {
		held = append(held, q.take(t, 200)...)
	}
	return held
}

// settleScattered settles a tenth of the messages, drawn from everywhere, by several calls, and compares every
// list with a model. Where processing lost values, that many settlements find nothing and push nothing.
func settleScattered(t testing.TB, q *queue, held []*flow.Reservation, rng *rand.Rand) {
	t.Helper()
	processing := q.list(t, q.keys.Processing)
	var dead, ready []string
	for range 3 {
		rng.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		batch := slices.Clone(held[:len(held)/30])
		held = held[len(batch):]
		slices.SortFunc(batch, func(a, b *flow.Reservation) int { return strings.Compare(a.Handle, b.Handle) })
		var settled []flow.Settlement
		for _, r := range batch {
			op := []flow.Op{flow.Ack, flow.DeadLetter, flow.Requeue}[rng.IntN(3)]
			settled = append(settled, settlement(r, op, op.String()+r.Text))
		}
		missing := 0
		for i, result := range q.settle(t, settled...) {
			at := slices.Index(processing, settled[i].Reservation.Text)
			switch {
			case result == flow.Missing && at < 0:
				missing++
				continue
			case result != flow.Done || at < 0:
				t.Fatalf("settlement %d: %v, its value is in flight: %t", i, result, at >= 0)
			}
			processing = slices.Delete(processing, at, at+1)
			switch settled[i].Op { //nolint:exhaustive // an ack pushes nothing, and there are no others
			case flow.DeadLetter:
				dead = append(dead, settled[i].Text)
			case flow.Requeue:
				ready = append(ready, settled[i].Text)
			}
		}
	}
	got := q.state(t)
	// Of equal values, which copy has left is nobody's concern.
	slices.Sort(got.Processing)
	slices.Sort(processing)
	if diff := cmp.Diff(processing, got.Processing); diff != "" {
		t.Errorf("processing differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(dead, got.DeadLetters); diff != "" {
		t.Errorf("dead letters differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ready, got.Ready); diff != "" {
		t.Errorf("ready differs (-want +got):\n%s", diff)
	}
	if len(got.Leases) != len(held) {
		t.Errorf("%d leases, want %d", len(got.Leases), len(held))
	}
}

// Whatever disturbs the order of a long list in flight costs time and nothing else.
func TestScatteredSettlements(t *testing.T) { // L4, B38
	t.Parallel()
	const n = 1200
	repeated := bodies(0, n)
	for i := range repeated {
		repeated[i] = body(i / 7 % 50)
	}
	for name, c := range map[string]struct {
		bodies  []string
		disturb func(t testing.TB, q *queue, held []*flow.Reservation)
	}{
		"in order":     {bodies: bodies(0, n)},
		"equal bodies": {bodies: repeated},
		"orphans before and between": {bodies(0, n), func(t testing.TB, q *queue, _ []*flow.Reservation) {
			for i := range 60 {
				q.do(t, "LPUSH", q.keys.Processing, fmt.Sprint("orphan", i))
				q.do(t, "LINSERT", q.keys.Processing, "AFTER", body(i*17), "another orphan")
			}
		}},
		"half of the leases renewed": {bodies(0, n), func(t testing.TB, q *queue, held []*flow.Reservation) {
			q.pass(40)
			var names []string
			for i := 0; i < len(held); i += 2 {
				names = append(names, held[i].Handle)
			}
			if _, err := q.Renew(t.Context(), names); err != nil {
				t.Fatal(err)
			}
		}},
		"values gone": {bodies(0, n), func(t testing.TB, q *queue, _ []*flow.Reservation) {
			for i := 0; i < n; i += 3 {
				q.do(t, "LREM", q.keys.Processing, 1, body(i))
			}
		}},
		"two hundred of others at the head": {bodies(0, n), func(t testing.TB, q *queue, _ []*flow.Reservation) {
			for i := range 200 {
				q.do(t, "LPUSH", q.keys.Processing, fmt.Sprint("orphan", i))
			}
		}},
		"the list reversed": {bodies(0, n), func(t testing.TB, q *queue, _ []*flow.Reservation) {
			for _, value := range q.list(t, q.keys.Processing) {
				q.do(t, "LREM", q.keys.Processing, 1, value)
				q.do(t, "LPUSH", q.keys.Processing, value)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, flow.Legacy, func(t *testing.T, q *queue) {
				held := scattered(t, q, c.bodies)
				if c.disturb != nil {
					c.disturb(t, q, held)
				}
				settleScattered(t, q, held, rand.New(rand.NewPCG(1, 2)))
			})
		})
	}
}

// scatteredLeavesNoMark is settleScattered, which compares the whole list.
func scatteredLeavesNoMark(t testing.TB, q *queue) {
	settleScattered(t, q, scattered(t, q, bodies(0, 1200)), rand.New(rand.NewPCG(5, 6)))
}

// lateInALargeBatch settles a batch large enough to go by tokens, a part of which has been settled before: each
// is told apart, wherever it stands.
func lateInALargeBatch(t testing.TB, q *queue) {
	t.Helper()
	held := scattered(t, q, bodies(0, 200))
	gone := []*flow.Reservation{held[0], held[77], held[150], held[199]}
	q.settle(t, acks(gone...)...)
	want := all(200, flow.Done)
	for _, i := range []int{0, 77, 150, 199} {
		want[i] = flow.Late
	}
	if diff := cmp.Diff(want, q.settle(t, acks(held...)...)); diff != "" {
		t.Errorf("results differ (-want +got):\n%s", diff)
	}
	q.expect(t, state{})
}

// TestLargeBatches settles batches by their tokens: at the head, in the middle, and beside what others do.
func TestLargeBatches(t *testing.T) { // L4, B38
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		lateInALargeBatch(t, q)
		held := scattered(t, q, bodies(0, 1000))
		flight := bodies(0, 1000)
		for _, r := range [][2]int{{0, 100}, {500, 600}, {900, 1000}, {150, 250}, {250, 500}, {600, 900}, {100, 150}} {
			part := held[r[0]:r[1]]
			settled := acks(part...)
			settled[3] = settlement(part[3], flow.DeadLetter, "dead"+part[3].Text)
			if diff := cmp.Diff(all(len(part), flow.Done), q.settle(t, settled...)); diff != "" {
				t.Errorf("%v: results differ (-want +got):\n%s", r, diff)
			}
			flight = slices.DeleteFunc(flight, func(text string) bool { return slices.Contains(texts(part), text) })
			if diff := cmp.Diff(flight, q.list(t, q.keys.Processing), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%v: processing differs (-want +got):\n%s", r, diff)
			}
			if n := len(q.scored(t, q.keys.Deadlines)); n != len(flight) {
				t.Errorf("%v: %d deadlines, want %d", r, n, len(flight))
			}
		}
		if len(flight) > 0 {
			t.Errorf("%d were not settled", len(flight))
		}
		q.expect(t, state{DeadLetters: []string{
			"dead" + body(3), "dead" + body(503), "dead" + body(903), "dead" + body(153), "dead" + body(253), "dead" + body(603),
			"dead" + body(103),
		}})
	})
}

// Hundreds of scattered settlements must not walk through the list once each: in order, and behind another's
// messages, one LREM per call is enough.
func TestScatteredSettlementsAreFound(t *testing.T) { // B38
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, _ *faultproxy.Proxy) {
		if q.layout != flow.Legacy {
			return
		}
		held := scattered(t, q, bodies(0, 3000))
		for i := range 20 { // another consumer's, without deadlines
			q.do(t, "LPUSH", q.keys.Processing, fmt.Sprint("orphan", i))
		}
		q.do(t, "CONFIG", "RESETSTAT")
		settleScattered(t, q, held, rand.New(rand.NewPCG(3, 4)))
		stats, err := q.client.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		// One false guess per call teaches it how far the others are off.
		for _, command := range []string{"lrem:calls=3,", "lset:calls=289,", `lrange:calls=\d,`} {
			if !regexp.MustCompile("cmdstat_" + command).MatchString(stats) {
				t.Errorf("no %q in\n%s", command, stats)
			}
		}
	})
}

// Tokens of later calls sort behind those of earlier ones.
func TestTokensAreOrdered(t *testing.T) { // L2, B38
	t.Parallel()
	last := ""
	for range 1000 {
		token := newToken()
		if len(token) != 24 || token[:12] < last || strings.Trim(token, "0123456789abcdef") != "" {
			t.Fatalf("%q after %q", token, last)
		}
		last = token[:12]
	}
}
