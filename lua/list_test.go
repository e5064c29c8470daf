package lua

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// What is not among the dead letters any more is not put in ready, of equal records each one is taken for itself, and the
// tokens of both lists stay in step.
func TestTakeOfDeadLetters(t *testing.T) { // D1, Z1
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { takesWhatIsThere(t, q) })
}

func takesWhatIsThere(t testing.TB, q *queue) {
	t.Helper()
	dead := DeadLetters(q.client, q.keys)
	if err := dead.Add(t.Context(), []string{"a", "b", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	there, err := dead.Take(t.Context(), Ready(q.client, q.keys), []string{"b", "gone", "b", "b", "a"}, []string{"B1", "GONE", "B2", "B3", "A"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, false, true, false, true}, there); diff != "" {
		t.Errorf("there (-want +got):\n%s", diff)
	}
	want := state{Ready: []string{"B1", "B2", "A"}, DeadLetters: []string{"c"}}
	if q.layout == flow.Zset {
		want.Notify, want.DeadNotify = 3, 1
	}
	q.expect(t, want)
}
