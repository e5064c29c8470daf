package lua

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// The edit of attempts as the vectors give it, through the real reserve; each alone, so that no twin is near.
func TestReserveEditsAttemptsOfVectors(t *testing.T) { // Z3, D1
	t.Parallel()
	cases := loadVectors(t).AttemptsEdit
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		for _, v := range cases {
			q.publish(t, v.Ready)
			res := q.reserve(t, everything(1))
			if v.Poison {
				if diff := cmp.Diff([]string{v.Ready}, res.Poison); diff != "" || res.Lease != nil {
					t.Errorf("%s: poison differs (-want +got):\n%s", v.Name, diff)
				}
				q.expect(t, state{DeadLetters: []string{v.Ready}, DeadNotify: 1})
				q.do(t, "DEL", q.keys.DeadLetters, q.keys.DeadLetterNotify)
				continue
			}
			held := items(res)
			if len(held) != 1 || held[0].Text != v.Reserved || held[0].Handle != v.Reserved {
				t.Errorf("%s: reserved %q, want %q", v.Name, texts(held), v.Reserved)
				continue
			}
			if held[0].Ready() != v.Ready { // Z7
				t.Errorf("%s: the ready text came back as %q, want %q", v.Name, held[0].Ready(), v.Ready)
			}
			q.expect(t, state{Reserved: entries(start+lease, v.Reserved)})
			if got := q.settle(t, acks(held...)...); got[0] != flow.Done {
				t.Errorf("%s: ack: %v", v.Name, got)
			}
		}
	})
}

// On every valid JSON text the script and the reference agree: the same bytes, or both refuse.
func TestReserveEditsAttemptsAsTheReferenceDoes(t *testing.T) { // Z3, B30, B31
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		drawing.Lock()
		defer drawing.Unlock()
		rapid.Check(t, func(t *rapid.T) {
			bodies := rapid.SliceOfN(document, 1, 300).Draw(t, "bodies")
			held, poison := q.raise(t, bodies)
			want, refused := reference(bodies)
			if diff := cmp.Diff(want, texts(held), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("edits differ (-reference +script):\n%s", diff)
			}
			if diff := cmp.Diff(refused, poison, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("refusals differ (-reference +script):\n%s", diff)
			}
			if diff := cmp.Diff(len(bodies), len(held)+len(poison)); diff != "" {
				t.Fatalf("the number of messages differs:\n%s", diff)
			}
		})
	})
}

// reference is what one reserve of bodies should reserve and refuse. Texts that are raised to the same bytes, as
// {} and {"attempts":0} are, are raised again until they are new.
func reference(bodies []string) (reserved, refused []string) {
	taken := map[string]bool{}
	var spoiled []string
	for _, b := range bodies {
		edited, _, err := envelope.RaiseAttempts(b)
		if err != nil {
			refused = append(refused, b)
			continue
		}
		for err == nil && taken[edited] {
			edited, _, err = envelope.RaiseAttempts(edited)
		}
		if err != nil {
			spoiled = append(spoiled, b)
			continue
		}
		taken[edited] = true
		reserved = append(reserved, edited)
	}
	return reserved, append(refused, spoiled...)
}

// Whatever the bytes are, reserve raises no error, loses nothing and can give the ready text back (B08).
func TestReserveOfAnyBytesIsUndone(t *testing.T) { // Z3, Z7, B08
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		drawing.Lock()
		defer drawing.Unlock()
		rapid.Check(t, func(t *rapid.T) {
			bodies := rapid.SliceOfN(rapid.OneOf(mutated, garbage), 1, 100).Draw(t, "bodies")
			held, poison := q.raise(t, bodies)
			got := append(readies(held), poison...)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(bodies))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("bodies differ (-published +given back):\n%s", diff)
			}
			for _, r := range held {
				if _, _, err := envelope.RaiseAttempts(r.Ready()); err == nil && r.Text == r.Ready() {
					t.Fatalf("%q was reserved unedited", r.Text)
				}
			}
		})
	})
}

// raise publishes bodies, reserves them all in one call, checks what went where, and leaves nothing behind.
func (q *queue) raise(t *rapid.T, bodies []string) ([]*flow.Reservation, []string) {
	ctx := t.Context()
	if err := q.Store.(publisher).Publish(ctx, bodies); err != nil {
		t.Fatal(err)
	}
	res, err := q.Reserve(ctx, everything(len(bodies)))
	if err != nil {
		t.Fatalf("reserve: %v", err)
	}
	held := items(res)
	reserved, err := q.client.ZCard(ctx, q.keys.Reserved).Result()
	if err != nil || int(reserved) != len(held) {
		t.Fatalf("%d members are reserved, %d were returned (%v)", reserved, len(held), err)
	}
	dead, err := q.client.LRange(ctx, q.keys.DeadLetters, 0, -1).Result()
	if err != nil || !slices.Equal(dead, res.Poison) {
		t.Fatalf("the dead letters hold %q, not the poison %q (%v)", dead, res.Poison, err)
	}
	results, err := q.Settle(ctx, acks(held...))
	if err != nil || slices.ContainsFunc(results, func(r flow.Result) bool { return r != flow.Done }) {
		t.Fatalf("acks: %v, %v", results, err)
	}
	if err := q.client.Del(ctx, q.keys.DeadLetters, q.keys.DeadLetterNotify).Err(); err != nil {
		t.Fatal(err)
	}
	return held, res.Poison
}

// drawing is held by a test while it draws: the library's generators may not be used by two tests at a time.
var drawing sync.Mutex

// Generators of JSON texts with everything the edit has to see through.
var (
	space = rapid.SampledFrom([]string{"", "", "", "", " ", "\n", "\t\r\n  "})

	chars = rapid.SampledFrom([]string{
		"a", "attempts", "é", "\U0001F600", "{", "}", "[", "]", ",", ":", "/", " ", "0",
		`\"`, `\\`, `\\\"`, `\/`, `\n`, `\u0061`, `\u0000`, `\ud83d\ude00`, `,\"attempts\":7}`, `\\u0061`,
	})

	text = rapid.Custom(func(t *rapid.T) string {
		return `"` + strings.Join(rapid.SliceOfN(chars, 0, 5).Draw(t, "chars"), "") + `"`
	})

	key = rapid.OneOf(text, rapid.SampledFrom([]string{
		`"attempts"`, `"attempts"`, `"\u0061ttempts"`, `"attempt\u0073"`, `"\u0061\u0074tempts"`, `"Attempts"`,
		`"attempts "`, `"\\u0061ttempts"`, `"attempts\u0000"`, `"\u0161ttempts"`, `"a"`, `"data"`,
	}))

	number = rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(0, 1200).Draw(t, "n")) }),
		rapid.SampledFrom([]string{
			"-1", "-0", "0.5", "1e2", "1E+2", "99999999999999", "100000000000000", "999999999999999",
			"1000000000000000", "9007199254740989", "9007199254740990", "9007199254740991", "9007199254740993",
			"18446744073709551615", "1e400", "0.1",
		}),
	)

	scalar = rapid.OneOf(number, text, rapid.SampledFrom([]string{"true", "false", "null", "{}", "[]"}))

	document = rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
			return space.Draw(t, "before") + value(t, 1) + space.Draw(t, "after") // seldom an object
		}
		return space.Draw(t, "before") + object(t, 2) + space.Draw(t, "after")
	})

	// mutated is a document with some bytes replaced, cut out, or put in.
	mutated = rapid.Custom(func(t *rapid.T) string {
		b := []byte(document.Draw(t, "document"))
		for range rapid.IntRange(1, 3).Draw(t, "mutations") {
			at := rapid.IntRange(0, len(b)).Draw(t, "at")
			to := min(len(b), at+rapid.IntRange(0, 3).Draw(t, "width"))
			b = slices.Replace(b, at, to, rapid.SliceOfN(special, 0, 2).Draw(t, "bytes")...)
		}
		return string(b)
	})

	special = rapid.OneOf(rapid.SampledFrom([]byte("\x00\xff\xc3\"\\{}[],: 09a")), rapid.Byte())

	garbage = rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(special, 0, 40).Draw(t, "bytes"))
	})
)

func value(t *rapid.T, depth int) string {
	switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case kind < 3 || depth == 0:
		return scalar.Draw(t, "scalar")
	case kind == 3:
		return object(t, depth-1)
	}
	var b strings.Builder
	b.WriteString("[" + space.Draw(t, "space"))
	for i := range rapid.IntRange(0, 3).Draw(t, "elements") {
		if i > 0 {
			b.WriteString("," + space.Draw(t, "space"))
		}
		b.WriteString(value(t, depth-1) + space.Draw(t, "space"))
	}
	return b.String() + "]"
}

func object(t *rapid.T, depth int) string {
	var b strings.Builder
	b.WriteString("{" + space.Draw(t, "space"))
	for i := range rapid.IntRange(0, 4).Draw(t, "members") {
		if i > 0 {
			b.WriteString("," + space.Draw(t, "space"))
		}
		fmt.Fprintf(&b, "%s%s:%s%s%s", key.Draw(t, "key"), space.Draw(t, "space"), space.Draw(t, "space"),
			value(t, depth), space.Draw(t, "space"))
	}
	if rapid.Bool().Draw(t, "canonical") {
		if !strings.HasSuffix(strings.TrimSpace(b.String()), "{") {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `"attempts":%s`, number.Draw(t, "attempts"))
	}
	return b.String() + "}"
}

// A long flat text is the worst case of the walk; it must not take Redis away from others (B08, B36).
func TestReserveOfLargeOddBodies(t *testing.T) {
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		size := 5 << 20
		if !q.b.Real {
			size = 64 << 10
		}
		bodies := []string{
			strings.Repeat(" ", size),
			`{"attempts":"` + strings.Repeat("9", size) + `"}`,
			strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
			`{"x":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`,
			`{"x":"` + strings.Repeat(`\"`, size/2) + `"}`,
		}
		held, poison := q.raiseAll(t, bodies)
		if diff := cmp.Diff([]string{bodies[3], bodies[4]}, readies(held)); diff != "" {
			t.Errorf("reserved bodies differ")
		}
		if !slices.Equal(poison, bodies[:3]) {
			t.Errorf("%d poison bodies, want the first three", len(poison))
		}
	})
}

// raiseAll is raise for an ordinary test.
func (q *queue) raiseAll(t *testing.T, bodies []string) (held []*flow.Reservation, poison []string) {
	t.Helper()
	q.publish(t, bodies...)
	res := q.reserve(t, everything(len(bodies)))
	return items(res), res.Poison
}
