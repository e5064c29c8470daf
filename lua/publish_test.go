package lua

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
)

func TestPublishAppends(t *testing.T) { // L1, Z1
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		odd := []string{"", "\x00\xff", body(1), body(1), sized(1, 1<<20)}
		q.publish(t, body(0))
		q.publish(t, odd...)
		want := state{Ready: append([]string{body(0)}, odd...)}
		if q.layout == flow.Zset {
			want.Notify = 6
			if tokens := q.list(t, q.keys.Notify); !slices.Equal(tokens, []string{"1", "1", "1", "1", "1", "1"}) {
				t.Errorf("tokens %q", tokens)
			}
		}
		q.expect(t, want)
	})
}

// Inside a caller's transaction messages and tokens appear with the rest of it, or not at all.
func TestPublishInATransaction(t *testing.T) { // L1, Z1, B46
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		ctx, p := t.Context(), q.Store.(publisher)
		mark := q.b.Prefix + "mark"
		_, err := q.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, mark, "1", 0)
			if err := p.PublishIn(ctx, pipe, bodies(0, 2)); err != nil {
				return err
			}
			q.expect(t, state{}) // nothing yet
			return p.PublishIn(ctx, pipe, bodies(2, 3))
		})
		if err != nil {
			t.Fatal(err)
		}
		want := state{Ready: bodies(0, 3)}
		if q.layout == flow.Zset {
			want.Notify = 3
		}
		q.expect(t, want)
		if q.client.Get(ctx, mark).Val() != "1" {
			t.Error("the caller's own command was not run")
		}
		pipe := q.client.TxPipeline()
		if err := p.PublishIn(ctx, pipe, bodies(5, 6)); err != nil {
			t.Fatal(err)
		}
		pipe.Discard()
		q.expect(t, want)
	})
}

// The delayed score is floor(now) + the whole seconds the caller rounded up to, as the vectors give it.
func TestPublishDelayedScoresOfVectors(t *testing.T) { // Z1, Z9, B33, B35
	t.Parallel()
	cases := loadVectors(t).DelayedScore
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		for _, v := range cases {
			s := q.with(t, func(o *Options) {
				o.Now = func() string { return strconv.FormatFloat(v.Now, 'f', -1, 64) }
			})
			s.clear(t)
			added, err := s.Store.(*Zset).PublishDelayed(t.Context(), []Delayed{{int64(math.Ceil(v.DelaySeconds)), body(1)}})
			if err != nil || !slices.Equal(added, []bool{true}) {
				t.Fatalf("%v, %v", added, err)
			}
			s.expect(t, state{Delayed: entries(v.Score, body(1))}) // no token (Z1)
			if t.Failed() {
				t.Fatalf("now %v, delay %v", v.Now, v.DelaySeconds)
			}
		}
	})
}

// Delayed is a set: what is in it already, or twice in one call, is reported and keeps its time.
func TestPublishDelayedDuplicates(t *testing.T) { // Z1, B05
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		s := q.Store.(*Zset)
		delay := func(messages ...Delayed) []bool {
			t.Helper()
			added, err := s.PublishDelayed(t.Context(), messages)
			if err != nil {
				t.Fatal(err)
			}
			return added
		}
		if diff := cmp.Diff([]bool{true, true, false}, delay(Delayed{5, "a"}, Delayed{0, "b"}, Delayed{9, "a"})); diff != "" {
			t.Errorf("added differs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]bool{false, true}, delay(Delayed{1, "a"}, Delayed{2_592_000, "c\x00\xff"})); diff != "" {
			t.Errorf("added differs (-want +got):\n%s", diff)
		}
		q.expect(t, state{Delayed: []entry{{"b", start}, {"a", start + 5}, {"c\x00\xff", start + 2_592_000}}})
		if added := delay(); len(added) != 0 {
			t.Errorf("added %v", added)
		}
		// Neither early nor late by the queue's own clock, the boundary second included (B33).
		q.pass(4)
		if moved := q.sweep(t, 1000); moved != 1 {
			t.Errorf("%d moved after 4 s, want the one without delay", moved)
		}
		q.pass(1)
		if moved := q.sweep(t, 1000); moved != 1 {
			t.Errorf("%d moved after 5 s, want 1", moved)
		}
		q.expect(t, state{Ready: []string{"b", "a"}, Notify: 2, Delayed: entries(start+2_592_000, "c\x00\xff")})
	})
}

// By the server's clock the score is at most a second early and never late (Z9).
func TestPublishDelayedByTheServersClock(t *testing.T) { // R2, Z9
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		s := q.with(t, func(o *Options) { o.Now = nil })
		before, err := q.client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Store.(*Zset).PublishDelayed(t.Context(), []Delayed{{30, "a"}}); err != nil {
			t.Fatal(err)
		}
		after, err := q.client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		got := q.scored(t, q.keys.Delayed)[0].Score
		if got < float64(before.Unix()+30) || got > float64(after.Unix()+30) {
			t.Errorf("score %v, want from %d to %d", got, before.Unix()+30, after.Unix()+30)
		}
	})
}
