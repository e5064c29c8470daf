package lua

import (
	"testing"

	"github.com/babelpool/babelpool/internal/flow"
)

func TestPause(t *testing.T) { // R6
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		look := func(want bool) {
			t.Helper()
			if got, err := q.Paused(t.Context()); err != nil || got != want {
				t.Errorf("paused %v, %v, want %v", got, err, want)
			}
			if got, err := q.Reserve(t.Context(), flow.ReserveRequest{Most: 1, Bytes: 1, FirstPop: 1, Migration: 1}); err != nil || got.Paused != want {
				t.Errorf("a reserve says paused %v, %v, want %v", got.Paused, err, want)
			}
		}
		look(false)
		const since = "2026-01-01T00:00:00Z"
		if err := q.client.Set(t.Context(), q.keys.Paused, since, 0).Err(); err != nil {
			t.Fatal(err)
		}
		look(true)
		if err := q.Pause(t.Context()); err != nil || q.client.Get(t.Context(), q.keys.Paused).Val() != since {
			t.Errorf("a pause of a paused queue: %v, %q", err, q.client.Get(t.Context(), q.keys.Paused).Val())
		}
		for range 2 { // again changes nothing
			if err := q.Resume(t.Context()); err != nil {
				t.Error(err)
			}
			look(false)
		}
		if err := q.Pause(t.Context()); err != nil {
			t.Error(err)
		}
		look(true)
		q.client.Del(t.Context(), q.keys.Paused)
		if err := q.client.RPush(t.Context(), q.keys.Paused, "of another type").Err(); err != nil {
			t.Fatal(err)
		}
		look(true)
	})
}
