package lua

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// What is put off comes back after its own time, not after the lease's, with the attempts it had (Z7). A renewal that was
// under way does not hold it, and its end is not counted as a lost worker (B21).
func TestPostponed(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { postponedComesBackInTime(t, q) })
}

func postponedComesBackInTime(t testing.TB, q *queue) {
	t.Helper()
	q = q.counting(t)
	q.publish(t, bodies(0, 4)...)
	held := q.take(t, 4)
	var batch []flow.Settlement
	for i, delay := range []int64{5, 500} {
		batch = append(batch, flow.Settlement{Reservation: held[i], Op: flow.Return, Text: held[i].Ready(), Delay: delay})
	}
	batch = append(batch, acks(held[2])[0])
	if diff := cmp.Diff(all(3, flow.Done), q.settle(t, batch...)); diff != "" {
		t.Errorf("results differ (-want +got):\n%s", diff)
	}
	_, _ = q.Renew(t.Context(), handles(held[:2])) // late in zset, without effect in legacy
	raised := body(3)
	if q.layout == flow.Zset {
		raised = counted(3, 1) // it was charged when it was reserved (Z3)
	}
	for _, step := range []struct {
		after int64
		want  string
		lost  int64
	}{
		{4, "", 0}, {1, body(0), 0}, {lease - 5, raised, 1}, {500 - lease - 1, "", 0}, {1, body(1), 0},
	} {
		q.pass(step.after)
		q.sweep(t, 1000)
		got := q.take(t, 10)
		if text := strings.Join(readies(got), ", "); text != step.want {
			t.Errorf("%d s later %q comes back, want %q", step.after, text, step.want)
		}
		for _, n := range workersLost(got) {
			if n != step.lost {
				t.Errorf("%q has lost %d workers, want %d", step.want, n, step.lost)
			}
		}
		q.settle(t, acks(got...)...)
	}
	q.expect(t, state{})
}

// Where leases never run out, what is put off comes back all the same.
func TestPostponedWithoutLeases(t *testing.T) { // L5
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q = q.with(t, func(o *Options) { o.RetryAfter = 0 })
		q.publish(t, body(1))
		held := q.take(t, 1)
		q.settle(t, flow.Settlement{Reservation: held[0], Op: flow.Return, Text: held[0].Ready(), Delay: 3})
		q.pass(3)
		if got := q.sweep(t, 10); got != 1 {
			t.Errorf("%d come back", got)
		}
		if diff := cmp.Diff([]string{body(1)}, readies(q.take(t, 10))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A large batch in which some are put off is settled each by its own way, in chunks.
func TestPostponedAmongMany(t *testing.T) {
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		const n = 4500
		q.publish(t, bodies(0, n)...)
		held := q.takeAll(t, n)
		batch := acks(held...)
		var want state
		for i := 0; i < n; i += 2 {
			batch[i].Op, batch[i].Delay = flow.Return, 7
			want.Processing = append(want.Processing, held[i].Text)
			want.Leases = append(want.Leases, entries(start+6.5, held[i].Text)...)
		}
		if diff := cmp.Diff(all(n, flow.Done), q.settle(t, batch...)); diff != "" {
			t.Errorf("results differ (-want +got):\n%.1000s", diff)
		}
		q.expect(t, want)
	})
}
