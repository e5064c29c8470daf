package lua

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// state is everything a queue has in Redis. Only what its layout has is set.
type state struct {
	Ready       []string
	Processing  []string // legacy
	Leases      []entry  // legacy: the deadlines without their tokens
	Delayed     []entry  // zset
	Reserved    []entry  // zset
	Notify      int      // zset: tokens
	DeadLetters []string
	DeadNotify  int // zset: tokens
}

// entry is a member of a sorted set.
type entry struct {
	Text  string
	Score float64
}

// never is the score of a lease that does not run out (L5).
var never = math.Inf(1)

// entries gives each text the same score.
func entries(score float64, texts ...string) []entry {
	var all []entry
	for _, text := range texts {
		all = append(all, entry{text, score})
	}
	return all
}

// state reads all keys of the queue.
func (q *queue) state(t testing.TB) state {
	t.Helper()
	s := state{
		Ready: q.list(t, q.keys.Ready), DeadLetters: q.list(t, q.keys.DeadLetters),
		Processing: q.list(t, q.keys.Processing),
		Delayed:    q.scored(t, q.keys.Delayed), Reserved: q.scored(t, q.keys.Reserved),
		Notify: len(q.list(t, q.keys.Notify)), DeadNotify: len(q.list(t, q.keys.DeadLetterNotify)),
	}
	for _, deadline := range q.scored(t, q.keys.Deadlines) {
		if len(deadline.Text) < tokenWidth || deadline.Text[tokenWidth-1] != ':' {
			t.Fatalf("deadline %.60q has no token (L2)", deadline.Text)
		}
		deadline.Text = deadline.Text[tokenWidth:]
		s.Leases = append(s.Leases, deadline)
	}
	return s
}

// expect compares all keys of the queue with want.
func (q *queue) expect(t testing.TB, want state) {
	t.Helper()
	if diff := cmp.Diff(want, q.state(t)); diff != "" {
		t.Errorf("the queue's keys differ (-want +got):\n%s", diff)
	}
}

// held is the state of a queue with these texts in flight since a score.
func (q *queue) held(score float64, texts ...string) state {
	if q.keys.Reserved != "" {
		return state{Reserved: entries(score, texts...)}
	}
	return state{Processing: texts, Leases: entries(score, texts...)}
}

// list reads a list; nil when the key is empty or the layout has none.
func (q *queue) list(t testing.TB, key string) []string {
	t.Helper()
	if key == "" {
		return nil
	}
	values, err := q.client.LRange(context.Background(), key, 0, -1).Result()
	if err != nil {
		t.Fatalf("reading %s: %v", key, err)
	}
	if len(values) == 0 {
		return nil
	}
	return values
}

// scored reads a sorted set by score, then by member.
func (q *queue) scored(t testing.TB, key string) []entry {
	t.Helper()
	if key == "" {
		return nil
	}
	members, err := q.client.ZRangeWithScores(context.Background(), key, 0, -1).Result()
	if err != nil {
		t.Fatalf("reading %s: %v", key, err)
	}
	var all []entry
	for _, m := range members {
		all = append(all, entry{m.Member.(string), m.Score})
	}
	return all
}

// snapshot reads every key under the queue's prefix as it is, keys of the wrong type too, tokens included.
func (q *queue) snapshot(t testing.TB) map[string]any {
	t.Helper()
	ctx := context.Background()
	keys, err := q.client.Keys(ctx, q.b.Prefix+"*").Result()
	if err != nil {
		t.Fatalf("listing keys: %v", err)
	}
	all := make(map[string]any, len(keys))
	for _, key := range keys {
		kind, err := q.client.Type(ctx, key).Result()
		if err != nil {
			t.Fatalf("type of %s: %v", key, err)
		}
		switch kind {
		case "list":
			all[strings.TrimPrefix(key, q.b.Prefix)] = q.list(t, key)
		case "zset":
			all[strings.TrimPrefix(key, q.b.Prefix)] = q.scored(t, key)
		case "hash":
			values, err := q.client.HGetAll(ctx, key).Result()
			if err != nil {
				t.Fatalf("reading %s: %v", key, err)
			}
			all[strings.TrimPrefix(key, q.b.Prefix)] = values
		default:
			value, err := q.client.Get(ctx, key).Result()
			if err != nil {
				t.Fatalf("reading %s: %v", key, err)
			}
			all[strings.TrimPrefix(key, q.b.Prefix)] = value
		}
	}
	return all
}

// untouched runs fn and fails when any key of the queue differs afterwards.
func (q *queue) untouched(t testing.TB, what string, fn func()) {
	t.Helper()
	before := q.snapshot(t)
	fn()
	if diff := cmp.Diff(before, q.snapshot(t)); diff != "" {
		t.Errorf("%s changed keys (-before +after):\n%s", what, diff)
	}
}

// clear removes all keys of the queue and sets the clock back.
func (q *queue) clear(t testing.TB) {
	t.Helper()
	q.clock.Store(start)
	for _, key := range append(q.keys.own(), q.keys.DeadLetters, q.keys.DeadLetterNotify) {
		if key == "" {
			continue
		}
		if err := q.client.Del(context.Background(), key).Err(); err != nil {
			t.Fatalf("removing %s: %v", key, err)
		}
	}
}

// do sends a command of the test's own, past the store.
func (q *queue) do(t testing.TB, words ...any) {
	t.Helper()
	if err := q.client.Do(context.Background(), words...).Err(); err != nil {
		t.Fatalf("%v: %v", words[:min(len(words), 3)], err)
	}
}

// fill puts bodies straight into a list of the test's choice.
func (q *queue) fill(t testing.TB, key string, values ...string) {
	t.Helper()
	for len(values) > 0 {
		n := min(len(values), 5000)
		if err := q.client.RPush(context.Background(), key, anys(values[:n])...).Err(); err != nil {
			t.Fatalf("filling %s: %v", key, err)
		}
		values = values[n:]
	}
}

// score puts members straight into a sorted set.
func (q *queue) score(t testing.TB, key string, members ...entry) {
	t.Helper()
	for len(members) > 0 {
		n := min(len(members), 5000)
		zs := make([]redis.Z, n)
		for i, m := range members[:n] {
			zs[i] = redis.Z{Score: m.Score, Member: m.Text}
		}
		if err := q.client.ZAdd(context.Background(), key, zs...).Err(); err != nil {
			t.Fatalf("filling %s: %v", key, err)
		}
		members = members[n:]
	}
}

func anys(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
