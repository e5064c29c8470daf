package lua

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

func (q *queue) renew(t testing.TB, members ...string) []flow.Result {
	t.Helper()
	results, err := q.Renew(t.Context(), members)
	if err != nil {
		t.Fatalf("renew: %v", err)
	}
	return results
}

func TestRenewRaisesTheExpiry(t *testing.T) { // L8, Z10
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 3)...)
		held := q.take(t, 3)
		q.pass(30)
		if diff := cmp.Diff(all(2, flow.Done), q.renew(t, held[0].Handle, held[2].Handle)); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
		q.pass(lease - 30)
		q.sweep(t, 1000) // only what was not renewed is due
		want := q.held(start+30+lease, q.stored(0), q.stored(2))
		want.Ready = []string{q.stored(1)}
		if q.layout == flow.Zset {
			want.Notify = 1
		}
		q.expect(t, want)
	})
}

// A score is raised or stays: neither a shorter lease nor a clock that went back lowers it, and what never
// expires stays so.
func TestRenewNeverLowers(t *testing.T) { // L8, Z10
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { renewNeverLowers(t, q) })
}

func renewNeverLowers(t testing.TB, q *queue) {
	t.Helper()
	endless := q.with(t, func(o *Options) { o.RetryAfter = 0 })
	endless.publish(t, body(1))
	forever := handles(endless.take(t, 1))
	q.publish(t, body(2))
	once := handles(q.take(t, 1))
	q.pass(-50)
	q.untouched(t, "renewing to an earlier time", func() {
		if diff := cmp.Diff(all(2, flow.Done), q.renew(t, forever[0], once[0])); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
	})
	q.pass(100)
	q.untouched(t, "renewing what never expires", func() { q.renew(t, forever...) })
	// A pool without leases makes those it renews endless.
	endless.renew(t, once...)
	s := q.state(t)
	for _, e := range append(s.Leases, s.Reserved...) {
		if e.Score != never {
			t.Errorf("%q scores %v, want +inf", e.Text, e.Score)
		}
	}
}

// What is gone is reported by position and not created again; the others are renewed.
func TestRenewOfLostLeases(t *testing.T) { // L8, Z10
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { renewCreatesNothing(t, q) })
}

func renewCreatesNothing(t testing.TB, q *queue) {
	t.Helper()
	q.publish(t, bodies(0, 4)...)
	held := q.take(t, 4)
	q.settle(t, acks(held[1])...)
	q.pass(10)
	members := append(handles(held), "never there", "-")
	want := []flow.Result{flow.Done, flow.Late, flow.Done, flow.Done, flow.Late, flow.Late}
	if diff := cmp.Diff(want, q.renew(t, members...)); diff != "" {
		t.Errorf("results differ (-want +got):\n%s", diff)
	}
	q.expect(t, q.held(start+10+lease, q.stored(0), q.stored(2), q.stored(3)))
	q.settle(t, acks(held[0], held[2], held[3])...)
	q.untouched(t, "renewing what is gone", func() {
		if diff := cmp.Diff(all(6, flow.Late), q.renew(t, members...)); diff != "" {
			t.Errorf("results differ (-want +got):\n%s", diff)
		}
	})
}

func TestRenewOfNothing(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		if got := q.renew(t); len(got) != 0 {
			t.Errorf("results %v", got)
		}
	})
}

// More leases than one call carries go out in chunks; positions are those of the caller.
func TestRenewInChunks(t *testing.T) { // L8, Z10, B37
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		const n = 2500
		q.publish(t, bodies(0, n)...)
		held := q.take(t, n)
		q.pass(5)
		members, want := handles(held), all(n, flow.Done)
		for _, lost := range []int{0, 999, 1000, 2499} {
			members[lost], want[lost] = fmt.Sprint("gone ", lost), flow.Late
		}
		if diff := cmp.Diff(want, q.renew(t, members...)); diff != "" {
			t.Errorf("results differ (-want +got):\n%.2000s", diff)
		}
		s := q.state(t)
		raised := 0
		for _, e := range append(s.Leases, s.Reserved...) {
			if e.Score == start+5+lease {
				raised++
			}
		}
		if raised != n-4 {
			t.Errorf("%d leases were raised, want %d", raised, n-4)
		}
	})
}
