package acker

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestALoneSettlementGoesAtOnce waits for nothing to fill a batch.
func TestALoneSettlementGoesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Legacy, 100)
		done := g.running(t.Context())
		for _, op := range []flow.Op{flow.Ack, flow.DeadLetter, flow.HandBack} {
			g.send(op)
			g.wantSent(t, op.String())
		}
		if d := time.Since(g.began); d != 0 {
			t.Errorf("took %s", d)
		}
		if err := g.end(done); err != nil {
			t.Error(err)
		}
		g.wantFreed(t, 3)
	})
}

// TestBatchesTakeWhatIsThere lets settlements pile up while a call is away.
func TestBatchesTakeWhatIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Legacy, 4)
		reply := make(chan struct{})
		g.answer = func(call) ([]flow.Result, error) { <-reply; return nil, nil }
		done := g.running(t.Context())
		g.send(flow.Ack)
		g.wantSent(t, "ack")
		g.send(slices.Repeat([]flow.Op{flow.Ack}, 10)...)
		g.wantSent(t) // one call at a time
		var sizes []int
		for range 4 {
			reply <- struct{}{}
			for _, c := range g.sent() {
				sizes = append(sizes, len(c.settled))
			}
		}
		if diff := cmp.Diff([]int{4, 4, 2}, sizes); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if err := g.end(done); err != nil {
			t.Error(err)
		}
		g.wantFreed(t, 11)
	})
}

// TestReservationOrder sorts what workers finished in any order, so that the store finds the values near the
// head of processing.
func TestReservationOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Legacy, 100)
		older := flow.NewLease(0, 3)
		newer := flow.NewLease(0, 3)
		g.book.Add(older, time.Now())
		g.book.Add(newer, time.Now())
		want := []string{"2/0", "2/1", "2/2", "3/0", "3/1", "3/2"}
		for _, order := range [][]int{{5, 4, 3, 2, 1, 0}, {2, 5, 0, 3, 1, 4}} {
			var settled []flow.Settlement
			for _, at := range order {
				l := []*flow.Lease{older, newer}[at/3]
				settled = append(settled, flow.Settlement{Reservation: &l.Items[at%3], Op: flow.Ack})
			}
			slices.SortFunc(settled, inReservationOrder)
			var got []string
			for _, s := range settled {
				got = append(got, fmt.Sprintf("%d/%d", s.Reservation.Lease().Number(), s.Reservation.Order))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", order, diff)
			}
		}

		// And the acker does so with both kinds of calls, each with its own settlements.
		var all []flow.Settlement
		for range 3 {
			all = append(all, g.settled(flow.Ack), g.settled(flow.HandBack), g.settled(flow.Leave))
		}
		slices.Reverse(all)
		for _, s := range all {
			g.in <- s
		}
		close(g.in)
		if err := g.acker.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls := g.sent()
		if len(calls) != 2 || calls[0].back || !calls[1].back {
			t.Fatalf("calls: %v", calls)
		}
		for i, c := range calls {
			var got []int
			for _, s := range c.settled {
				got = append(got, s.Reservation.Order)
			}
			if diff := cmp.Diff([]int{i, i + 3, i + 6}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c, diff)
			}
		}
	})
}

// TestLocalOnes never reach the store: the lease of a failed message brings it back, a lost one is another's.
func TestLocalOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Legacy, 100)
		done := g.running(t.Context())
		g.send(flow.Leave, flow.Forget, flow.Leave)
		g.wantSent(t)
		g.wantFreed(t, 3)
		g.send(flow.Leave, flow.Ack, flow.Forget)
		g.wantSent(t, "ack")
		if err := g.end(done); err != nil {
			t.Error(err)
		}
		g.wantFreed(t, 6)
		g.wantCount(t, map[string]int64{"Left": 3, "Acked": 1})
	})
}

// TestResultsAreCounted by what became of each settlement.
func TestResultsAreCounted(t *testing.T) {
	t.Parallel()
	for op, done := range map[flow.Op]string{
		flow.Ack: "Acked", flow.Release: "Released", flow.Return: "Returned", flow.Requeue: "Requeued",
		flow.DeadLetter: "DeadLettered", flow.HandBack: "HandedBack",
	} {
		for result, name := range map[flow.Result]string{
			flow.Done: done, flow.Late: "Late", flow.Missing: "Missing", flow.Stayed: "Left",
		} {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(flow.Zset, 100)
				g.answer = func(call) ([]flow.Result, error) { return []flow.Result{result, flow.Done}, nil }
				g.send(op, op)
				close(g.in)
				if err := g.acker.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := map[string]int64{done: 1}
				want[name]++
				g.wantCount(t, want)
				g.wantFreed(t, 2)
			})
		}
	}
}

// TestPartlyLateBatch is B13 (a): one of 100 tokens is unknown.
func TestPartlyLateBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Legacy, 512)
		g.answer = func(c call) ([]flow.Result, error) {
			results := make([]flow.Result, len(c.settled))
			results[42] = flow.Late
			return results, nil
		}
		g.send(slices.Repeat([]flow.Op{flow.Ack}, 100)...)
		close(g.in)
		if err := g.acker.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(g.sent()); n != 1 {
			t.Errorf("%d calls, want one", n)
		}
		g.wantCount(t, map[string]int64{"Acked": 99, "Late": 1})
		g.wantFreed(t, 100)
	})
}
