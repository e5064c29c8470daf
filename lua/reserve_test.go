package lua

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/babelpool/babelpool/internal/flow"
)

func TestReserveMovesTheHeadInOrder(t *testing.T) { // L2, Z3, L5
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 5)...)
		res := q.reserve(t, everything(3))
		if res.Left != 2 || res.Moved != 0 || res.Paused || res.Sent.IsZero() || len(res.Poison) != 0 {
			t.Errorf("answer %+v", res)
		}
		held := items(res)
		if diff := cmp.Diff([]string{q.stored(0), q.stored(1), q.stored(2)}, texts(held)); diff != "" {
			t.Errorf("reserved texts differ (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(bodies(0, 3), readies(held)); diff != "" {
			t.Errorf("ready texts differ (-want +got):\n%s", diff)
		}
		for i, r := range held {
			if r.Order != i || r.Lease() != res.Lease || r.State() != flow.Buffered {
				t.Errorf("reservation %d: order %d, state %v", i, r.Order, r.State())
			}
		}
		// The clock says start + 0.5 s; the score is whole seconds and rounds the clock down.
		want := q.held(start+lease, q.stored(0), q.stored(1), q.stored(2))
		want.Ready = bodies(3, 5)
		if q.layout == flow.Zset {
			want.Notify = 2
		}
		q.expect(t, want)
	})
}

func TestReserveOfNothing(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		res := q.reserve(t, everything(10))
		if res.Lease != nil || res.Left != 0 || res.Moved != 0 || res.Paused {
			t.Errorf("answer %+v", res)
		}
		q.expect(t, state{})
		q.publish(t, body(1))
		if held := q.take(t, 10); len(held) != 1 {
			t.Errorf("%d reserved, want 1", len(held))
		}
	})
}

// Without a lease nothing is ever swept; a lease of odd length is rounded up to whole seconds (L5).
func TestReserveScores(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		disabled := q.with(t, func(o *Options) { o.RetryAfter = 0 })
		disabled.publish(t, body(1))
		disabled.take(t, 1)
		q.expect(t, q.held(never, q.stored(1)))

		q.pass(1 << 40)
		if moved := disabled.sweep(t, 1000); moved != 0 {
			t.Errorf("%d moved although leases never run out", moved)
		}
		if res := disabled.reserve(t, everything(1)); res.Lease != nil || res.Moved != 0 {
			t.Errorf("the next reserve: %+v", res)
		}
		q.clock.Store(start)

		odd := q.with(t, func(o *Options) { o.RetryAfter = 2*time.Second + time.Millisecond })
		odd.publish(t, body(2))
		odd.take(t, 1)
		scores := map[string]float64{}
		for _, e := range append(q.state(t).Leases, q.state(t).Reserved...) {
			scores[e.Text] = e.Score
		}
		if scores[q.stored(2)] != start+3 {
			t.Errorf("a lease of 2.001 s scores %v, want now + 3", scores)
		}
	})
}

// The server's own clock counts when no other is given (R2).
func TestReserveByTheServersClock(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q = q.with(t, func(o *Options) { o.Now = nil })
		q.publish(t, body(1))
		before := time.Now().Unix()
		q.take(t, 1)
		after := time.Now().Unix()
		s := q.state(t)
		score := append(s.Leases, s.Reserved...)[0].Score
		if score < float64(before+lease) || score > float64(after+lease) || score != float64(int64(score)) {
			t.Errorf("score %v, want whole seconds from %d to %d", score, before+lease, after+lease)
		}
	})
}

// Equal bodies are separate reservations with separate tokens, in one call and across calls.
func TestLegacyTokensKeepEqualBodiesApart(t *testing.T) { // L2
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		for range 50 {
			q.publish(t, body(7))
		}
		held := append(q.take(t, 20), q.take(t, 30)...)
		token := regexp.MustCompile(`^[0-9a-f]{32}:`)
		seen := map[string]bool{}
		for i, r := range held {
			if !token.MatchString(r.Handle) || r.Handle[tokenWidth:] != body(7) {
				t.Fatalf("handle %q", r.Handle)
			}
			if seen[r.Handle] {
				t.Fatalf("reservation %d has the token of another", i)
			}
			seen[r.Handle] = true
		}
		if s := q.state(t); len(s.Leases) != 50 || len(s.Processing) != 50 {
			t.Fatalf("%d deadlines, %d values in processing, want 50 of each", len(s.Leases), len(s.Processing))
		}
		q.settle(t, acks(held[0])...)
		if s := q.state(t); len(s.Leases) != 49 || len(s.Processing) != 49 {
			t.Errorf("one ack left %d deadlines and %d values, want 49 of each", len(s.Leases), len(s.Processing))
		}
	})
}

// The value that crosses the budget is the last; what a chunk took beyond goes back in order.
func TestReserveKeepsToTheByteBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sizes    []int
		most     int
		budget   int64
		firstPop int
		want     int
	}{
		"guess too high":      {[]int{100, 100, 100, 100, 100, 100}, 6, 250, 6, 3},
		"guess too low":       {[]int{100, 100, 100, 100, 100, 100}, 6, 450, 1, 5},
		"exactly":             {[]int{100, 100, 100, 100}, 4, 200, 4, 2},
		"one byte more":       {[]int{100, 100, 100, 100}, 4, 201, 4, 3},
		"one larger than all": {[]int{5000, 100, 100}, 3, 1, 3, 1},
		"large after small":   {[]int{30, 30, 30, 9000, 30, 30}, 6, 91, 2, 4},
		"small after large":   {[]int{9000, 30, 30, 30, 30, 30}, 6, 9001, 1, 2},
		"most is less":        {[]int{30, 30, 30, 30}, 2, 1 << 40, 4, 2},
		"guess of nothing":    {[]int{30, 30, 30, 30}, 3, 1 << 40, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayout(t, func(t *testing.T, q *queue) {
				all := make([]string, len(c.sizes))
				for i, size := range c.sizes {
					all[i] = sized(i, size)
				}
				q.publish(t, all...)
				res := q.reserve(t, flow.ReserveRequest{
					Most: c.most, Bytes: c.budget, FirstPop: c.firstPop, Migration: 1000,
				})
				if diff := cmp.Diff(all[:c.want], readies(items(res)), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("reserved bodies differ (-want +got):\n%.2000s", diff)
				}
				if diff := cmp.Diff(all[c.want:], q.list(t, q.keys.Ready), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the rest differs (-want +got):\n%.2000s", diff)
				}
				if res.Left != len(all)-c.want {
					t.Errorf("left %d, want %d", res.Left, len(all)-c.want)
				}
			})
		})
	}
}

// Whatever the guess, calls in a row yield every message once, in order, each call as many as fit.
func TestReserveInCallsKeepsOrder(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		rnd := rand.New(rand.NewPCG(1, 2))
		all := make([]string, 2500)
		for i := range all {
			size := 40
			if rnd.IntN(20) == 0 {
				size = 3000
			}
			all[i] = sized(i, size)
		}
		q.publish(t, all...)
		var got []string
		for len(got) < len(all) {
			req := flow.ReserveRequest{
				Most: 1 + rnd.IntN(1500), Bytes: int64(1 + rnd.IntN(60_000)), FirstPop: 1 + rnd.IntN(2000), Migration: 1000,
			}
			res := q.reserve(t, req)
			part := readies(items(res))
			want, bytes := 0, int64(0)
			for i := len(got); i < len(all) && want < req.Most && bytes < req.Bytes; i++ {
				want, bytes = want+1, bytes+int64(len(all[i]))
			}
			if len(part) != want {
				t.Fatalf("request %+v took %d, want %d", req, len(part), want)
			}
			got = append(got, part...)
		}
		if !slices.Equal(all, got) {
			t.Error("the order was not kept")
		}
	})
}

// A paused queue is swept and promoted but yields nothing (R6).
func TestReserveOfAPausedQueue(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 3)...)
		q.take(t, 1)
		q.pass(lease)
		q.do(t, "SET", q.keys.Paused, "1")
		res := q.reserve(t, everything(10))
		if !res.Paused || res.Lease != nil || res.Left != 3 || res.Moved != 1 {
			t.Errorf("answer %+v", res)
		}
		q.do(t, "DEL", q.keys.Paused)
		if held := q.take(t, 10); len(held) != 3 {
			t.Errorf("%d reserved after the pause, want 3", len(held))
		}
	})
}

// Every byte goes through: NUL, invalid UTF-8, nothing at all, a megabyte (B08).
func TestReserveOfAnyBytes(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		odd := []string{
			"{\"a\":\"\x00\",\"attempts\":0}", "{\"a\":\"\xff\xfe\xc3\",\"attempts\":4}", sized(1, 1<<20),
			"{\"\x00\":1}", "{}", " {\t}\n",
		}
		broken := []string{"", "\x00", "\xff", "{", "[]", "null", "5"}
		q.publish(t, append(slices.Clone(odd), broken...)...)
		res := q.reserve(t, everything(100))
		got := readies(items(res))
		if q.layout == flow.Zset {
			if diff := cmp.Diff(broken, res.Poison); diff != "" {
				t.Errorf("poison differs (-want +got):\n%s", diff)
			}
			got = append(got, res.Poison...)
		}
		if want := append(slices.Clone(odd), broken...); !slices.Equal(want, got) {
			t.Errorf("bodies differ:\n%.300q\n%.300q", want, got)
		}
		for i, result := range q.settle(t, acks(items(res)...)...) {
			if result != flow.Done {
				t.Errorf("ack of %.40q: %v", items(res)[i].Text, result)
			}
		}
	})
}

// Bodies that nobody can decode: the script never raises, the good ones come through, and in the zset layout
// what cannot be edited ends in the dead letters with its own bytes, equal ones too, each with a token.
func TestReserveOfUndecodableBodies(t *testing.T) { // Z3, D1, B08
	t.Parallel()
	uneditable := []string{
		"", "{", "5", `"str"`, "null", "[]", "NaN", strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "\xff\xfe", "\x00",
		`{"job":"j","attempts":null}`, `{"job":"j","attempts":"3"}`, `{"job":"j","attempts":{}}`, `{"attempts":-1}`,
		`{"attempts":1e308}`, `{"attempts":01}`, `{"attempts":}`, `{"attempts"}`, `{"attempts":0}{}`, `{"attempts":0`,
		`{"a":"\`, `{"a":"`, "{} x", strings.Repeat(" ", 1<<16), "", `{"attempts":9007199254740991}`,
	}
	eachLayout(t, func(t *testing.T, q *queue) {
		var all, good []string
		for i := range 100 {
			good = append(good, body(i))
			all = append(all, body(i), uneditable[i%len(uneditable)])
		}
		q.publish(t, all...)
		res := q.reserve(t, everything(len(all)))
		if q.layout == flow.Legacy {
			if !slices.Equal(all, texts(items(res))) {
				t.Error("the legacy layout looks into no body, but bodies differ")
			}
			return
		}
		if !slices.Equal(good, readies(items(res))) {
			t.Errorf("good bodies differ: %d", len(items(res)))
		}
		var bad []string
		for i := range 100 {
			bad = append(bad, uneditable[i%len(uneditable)])
		}
		if diff := cmp.Diff(bad, res.Poison); diff != "" {
			t.Errorf("poison differs (-want +got):\n%.2000s", diff)
		}
		s := q.state(t)
		if !slices.Equal(bad, s.DeadLetters) || s.DeadNotify != len(bad) || s.Notify != 0 || s.Ready != nil {
			t.Errorf("%d dead letters with %d tokens, want %d; %d ready", len(s.DeadLetters), s.DeadNotify, len(bad), len(s.Ready))
		}
		if again := q.reserve(t, everything(10)); again.Lease != nil || len(again.Poison) != 0 {
			t.Errorf("poison loops: %s", fmt.Sprint(again.Poison))
		}
	})
}
