package lua

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/flow"
)

// deadAt is a dead letter record that failed at a second.
func deadAt(n int, second int64) string {
	return envelope.DeadLetterRecord(body(n), envelope.DeadLetter{
		Reason: envelope.ReasonFailed, FailedAt: second * 1000, OriginalQueue: "orders",
	})
}

// bury puts records in the dead letters, each with its token (D1).
func (q *queue) bury(t testing.TB, records ...string) {
	t.Helper()
	q.fill(t, q.keys.DeadLetters, records...)
	if q.keys.DeadLetterNotify != "" {
		for range records {
			q.fill(t, q.keys.DeadLetterNotify, "1")
		}
	}
}

func (q *queue) trim(t testing.TB, limits flow.DeadLetterLimits) (discarded int, more bool) {
	t.Helper()
	discarded, more, err := q.Trim(t.Context(), limits)
	if err != nil {
		t.Fatalf("trim: %v", err)
	}
	return discarded, more
}

// trimmed trims until there is nothing more, and checks that tokens are in step (D1).
func (q *queue) trimmed(t testing.TB, limits flow.DeadLetterLimits) (discarded int) {
	t.Helper()
	for calls, more := 0, true; more; calls++ {
		if calls == 100 {
			t.Fatalf("%+v: a hundred calls, and there is more", limits)
		}
		var n int
		n, more = q.trim(t, limits)
		discarded += n
	}
	if s := q.state(t); q.keys.DeadLetterNotify != "" && s.DeadNotify != len(s.DeadLetters) {
		t.Errorf("%d tokens beside %d dead letters (D1)", s.DeadNotify, len(s.DeadLetters))
	}
	return discarded
}

// The oldest go, and as many as are beyond the number; every other key stays.
func TestB42CountOfDeadLetters(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) { countOfDeadLetters(t, q) })
}

func countOfDeadLetters(t testing.TB, q *queue) {
	t.Helper()
	q.publish(t, bodies(0, 3)...)
	q.take(t, 1)
	q.bury(t, "raw", deadAt(1, start), deadAt(2, start), deadAt(3, start))
	before := q.state(t)
	if n := q.trimmed(t, flow.DeadLetterLimits{Count: 4}); n != 0 {
		t.Errorf("%d discarded at the limit", n)
	}
	q.expect(t, before)
	if n := q.trimmed(t, flow.DeadLetterLimits{Count: 2}); n != 2 {
		t.Errorf("%d discarded, want 2", n)
	}
	before.DeadLetters = before.DeadLetters[2:]
	before.DeadNotify = min(before.DeadNotify, 2)
	q.expect(t, before)
}

// A call discards at most 1,000 and says that there are more.
func TestB42TrimIsBounded(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		records := make([]string, 2500)
		for i := range records {
			records[i] = deadAt(i, start-1000)
		}
		for name, limits := range map[string]flow.DeadLetterLimits{
			"count": {Count: 100}, "age": {Age: 10 * time.Second}, "bytes": {Bytes: 1000},
			"all": {Count: 100, Age: time.Hour, Bytes: 1 << 30},
		} {
			q.clear(t)
			q.fill(t, q.keys.DeadLetters, records...)
			n, more := q.trim(t, limits)
			if n != 1000 || !more {
				t.Errorf("%s: %d discarded, more: %t", name, n, more)
			}
			for more {
				n, more = q.trim(t, limits)
			}
			if left := len(q.list(t, q.keys.DeadLetters)); left > limits.Count && name != "bytes" || left > 10 && name == "bytes" {
				t.Errorf("%s: %d are left, and the last call discarded %d", name, left, n)
			}
		}
	})
}

// Age is told by failed_at: the last in the text, in any spelling; who has none is as old as the next that has one, and a
// time in the future says nothing. What is young ends the search, since what is behind it was added later.
func TestB42AgeOfDeadLetters(t *testing.T) {
	t.Parallel()
	old, young, future := deadAt(1, start-61), deadAt(2, start-59), deadAt(3, start+100)
	for name, tc := range map[string]struct {
		records []string
		drop    int
	}{
		"none":                        {nil, 0},
		"young":                       {[]string{young}, 0},
		"old":                         {[]string{old}, 1},
		"exactly":                     {[]string{deadAt(1, start-60)}, 0},
		"old, young":                  {[]string{old, old, young}, 2},
		"an old one behind a young":   {[]string{young, old}, 0},
		"raw":                         {[]string{"raw", "other"}, 0},
		"raw before old":              {[]string{"raw", old, "raw", young}, 2},
		"raw before young":            {[]string{"raw", young}, 0},
		"future before old":           {[]string{future, old, young}, 2},
		"spaced":                      {[]string{fmt.Sprintf(`{"dead_letter": {"failed_at" : %d } }`, (start-61)*1000)}, 1},
		"data that looks like it":     {[]string{strings.Replace(young, `"n":2`, `"data":{"failed_at":5}`, 1)}, 0},
		"data of old that looks like": {[]string{strings.Replace(old, `"n":1`, fmt.Sprintf(`"data":{"failed_at":%d}`, start*1000), 1)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayout(t, func(t *testing.T, q *queue) {
				q.bury(t, tc.records...)
				if n := q.trimmed(t, flow.DeadLetterLimits{Age: 59*time.Second + 1}); n != tc.drop {
					t.Errorf("%d discarded, want %d", n, tc.drop)
				}
				if diff := cmp.Diff(append([]string(nil), tc.records[tc.drop:]...), q.list(t, q.keys.DeadLetters)); diff != "" {
					t.Errorf("dead letters (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// An age beyond all others discards nothing, and large records all go although a call looks at a megabyte alone; those
// that tell no age end the calls.
func TestB42AgeOfLargeRecords(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		var records []string
		for i := range 40 {
			large := `"x":"` + strings.Repeat("x", 100_000) + `","attempts"`
			records = append(records, strings.Replace(deadAt(i, start-100), `"attempts"`, large, 1))
		}
		q.bury(t, records...)
		if n := q.trimmed(t, flow.DeadLetterLimits{Age: math.MaxInt64, Count: math.MaxInt, Bytes: math.MaxInt64}); n != 0 {
			t.Errorf("%d discarded by limits without end", n)
		}
		if n := q.trimmed(t, flow.DeadLetterLimits{Age: time.Second}); n != len(records) {
			t.Errorf("%d discarded, want %d", n, len(records))
		}
		for range 40 {
			q.bury(t, strings.Repeat("x", 100_000))
		}
		if n := q.trimmed(t, flow.DeadLetterLimits{Age: time.Second}); n != 0 {
			t.Errorf("%d discarded that tell no age", n)
		}
	})
}

// Bytes are what Redis counts, large records among small ones too; no more is discarded than must be.
func TestB42BytesOfDeadLetters(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		var records []string
		for i := range 200 {
			size := 300
			if i%10 == 3 {
				size = 20_000
			}
			records = append(records, sized(i, size))
		}
		q.bury(t, records...)
		const most = 200_000
		n := q.trimmed(t, flow.DeadLetterLimits{Bytes: most})
		used, err := q.client.MemoryUsage(t.Context(), q.keys.DeadLetters).Result()
		if err != nil {
			t.Fatal(err)
		}
		if used > most || used < most-40_000 {
			t.Errorf("%d bytes are left after %d records, want at most %d and no less than a record or two below", used, n, most)
		}
		if diff := cmp.Diff(records[n:], q.list(t, q.keys.DeadLetters)); diff != "" {
			t.Errorf("dead letters (-want +got):\n%s", diff)
		}
		if n := q.trimmed(t, flow.DeadLetterLimits{Bytes: 1}); n == 0 || len(q.list(t, q.keys.DeadLetters)) != 0 {
			t.Errorf("%d discarded by a limit of one byte, some are left", n)
		}
		if n := q.trimmed(t, flow.DeadLetterLimits{Bytes: 1}); n != 0 {
			t.Errorf("%d discarded of nothing", n)
		}
	})
}

// A key of the user's own gets no token and loses none (D1).
func TestB42OwnDeadLetterKey(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		own := q.b.Prefix + "graveyard"
		q = q.with(t, func(o *Options) { o.Keys.DeadLetters, o.Keys.DeadLetterNotify = own, "" })
		q.fill(t, own, "a", "b", "c")
		q.fill(t, own+":notify", "1", "1", "1")
		if n, _ := q.trim(t, flow.DeadLetterLimits{Count: 1}); n != 2 {
			t.Errorf("%d discarded, want 2", n)
		}
		if got := len(q.list(t, own+":notify")); got != 3 {
			t.Errorf("%d of 3 values are left in a key that is not ours", got)
		}
		q.do(t, "DEL", own, own+":notify")
	})
}

// Tokens that a consumer of the dead letters took are not missed: never more tokens than dead letters, and none added.
func TestB42TokensStayInStep(t *testing.T) { // D1, B41
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.fill(t, q.keys.DeadLetters, "a", "b", "c", "d")
		q.fill(t, q.keys.DeadLetterNotify, "1", "1", "1")
		for _, tc := range []struct{ most, tokens int }{{3, 3}, {2, 2}, {1, 1}} {
			q.trim(t, flow.DeadLetterLimits{Count: tc.most})
			if got := q.state(t); got.DeadNotify != tc.tokens {
				t.Errorf("%d tokens beside %d dead letters, want %d", got.DeadNotify, len(got.DeadLetters), tc.tokens)
			}
		}
	})
}

func TestB42WrongTypeOfDeadLetters(t *testing.T) { // B07
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		for _, key := range []string{q.keys.DeadLetters, q.keys.DeadLetterNotify} {
			if key == "" {
				continue
			}
			q.clear(t)
			q.bury(t, "a", "b")
			q.do(t, "SET", key, "somebody else's")
			q.untouched(t, "trim", func() {
				_, _, err := q.Trim(t.Context(), flow.DeadLetterLimits{Count: 1, Age: time.Hour, Bytes: 1})
				if !errors.Is(err, flow.ErrPermanent) || !strings.Contains(fmt.Sprint(err), key) {
					t.Errorf("%v, want ErrPermanent and %s", err, key)
				}
			})
		}
	})
}

// A server that forbids MEMORY is told from one that obeys before anything is discarded.
func TestB42MemoryForbidden(t *testing.T) {
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, _ *faultproxy.Proxy) { memoryForbidden(t, q) })
}

func memoryForbidden(t *testing.T, q *queue) {
	t.Helper()
	q.bury(t, "a", "b", "c")
	q.do(t, "ACL", "SETUSER", "default", "-memory")
	q.untouched(t, "trim", func() {
		if _, _, err := q.Trim(t.Context(), flow.DeadLetterLimits{Count: 1, Bytes: 100}); !errors.Is(err, flow.ErrPermanent) {
			t.Errorf("%v, want ErrPermanent", err)
		}
	})
	if n, _ := q.trim(t, flow.DeadLetterLimits{Count: 1}); n != 2 {
		t.Errorf("%d discarded without a limit of bytes, want 2", n)
	}
}
