package envelope

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The generators write JSON texts with everything a peer might do: any order,
// white space, escaped spellings, keys that stand twice, wrong types. Names are
// drawn mostly from those that mean something, so that rules meet each other.

var (
	space = rapid.SampledFrom([]string{"", "", "", " ", "\n ", "\t"})
	names = rapid.SampledFrom([]string{"job", "urn", "trace_id", "data", "meta", "attempts", "dead_letter", "timestamp",
		"id", "queue", "lang", "schema_version", "created_at", "max_retries", "source", "ts",
		"__bq_frame", "headers", "body", "x", "", "é", "a\"b", "Job"})
	scalars = rapid.SampledFrom([]string{"0", "1", "1", "9", "42", "9007199254740990", "9007199254740991", "9223372036854775808", "-1", "-0", "1.0", "1e400",
		"null", "true", `""`, `" "`, `"a"`, `"\u0061\ud83d\ude00é"`, `"\"attempts\":5}"`, `"{\"attempts\":4}"`})
)

// drawKey spells a name as a JSON string, now and then with an escape.
func drawKey(t *rapid.T) string {
	name := names.Draw(t, "name")
	key := string(appendQuoted(nil, name))
	if rapid.IntRange(0, 9).Draw(t, "escape") == 0 {
		key = strings.Replace(key, "t", `\u0074`, 1)
		key = strings.Replace(key, "o", `\u006F`, 1)
	}
	return key
}

func drawValue(t *rapid.T, depth int) string {
	kinds := 4
	if depth == 0 {
		kinds = 1
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 2:
		var items []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, space.Draw(t, "s")+drawValue(t, depth-1))
		}
		return "[" + strings.Join(items, ",") + space.Draw(t, "s") + "]"
	case 3, 4:
		return drawObject(t, depth-1, nil)
	default:
		return scalars.Draw(t, "scalar")
	}
}

// drawObject writes an object of random members, in random order with those
// given.
func drawObject(t *rapid.T, depth int, given []string) string {
	all := append([]string(nil), given...)
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		all = append(all, drawKey(t)+space.Draw(t, "s")+":"+space.Draw(t, "s")+drawValue(t, max(depth, 0)))
	}
	if len(all) > 1 && rapid.Bool().Draw(t, "shuffle") {
		all = rapid.Permutation(all).Draw(t, "order")
	}
	var b strings.Builder
	b.WriteString("{" + space.Draw(t, "s"))
	for i, member := range all {
		if i > 0 {
			b.WriteString(space.Draw(t, "s") + "," + space.Draw(t, "s"))
		}
		b.WriteString(member)
	}
	return b.String() + space.Draw(t, "s") + "}"
}

// drawText writes what a list may hold: mostly near an envelope or a frame, and
// now and then broken.
func drawText(t *rapid.T) string {
	var given []string
	switch rapid.IntRange(0, 3).Draw(t, "near") {
	case 0:
		given = []string{`"__bq_frame":1`, `"body":` + string(appendQuoted(nil, drawObject(t, 1, nil)))}
	case 1, 2:
		given = []string{`"job":"a"`, `"trace_id":"t"`, `"data":{}`, `"meta":` + drawObject(t, 0, []string{`"schema_version":1`})}
	}
	text := space.Draw(t, "s") + drawObject(t, 2, given) + space.Draw(t, "s")
	if rapid.IntRange(0, 9).Draw(t, "break") == 0 {
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		text = text[:at] + rapid.SampledFrom([]string{"", "x", ",", "\"", "}", "\xff", "\x00", "0"}).Draw(t, "with") + text[min(at+1, len(text)):]
	}
	return text
}

func TestPropertyTexts(t *testing.T) { // E3 to E5, F2, Z3, L6, D2
	t.Parallel()
	for name, check := range map[string]func(testing.TB, string){
		"decode":      checkDecode,
		"raise":       checkRaise,
		"requeue":     checkRequeue,
		"unframe":     checkUnframe,
		"dead letter": func(t testing.TB, text string) { checkDeadLetter(t, text, "boom") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { check(asTB{t, rt}, drawText(rt)) })
		})
	}
}

// TestPropertyReaches guards the generator: a property over texts that are all
// refused would hold for a function that refuses everything.
func TestPropertyReaches(t *testing.T) {
	t.Parallel()
	reached := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		text := drawText(rt)
		if _, err := Decode(text); err == nil {
			reached["an envelope"]++
		} else {
			reached["poison"]++
		}
		if _, ok := Unframe(text); ok {
			reached["a frame"]++
		}
		if !IsObject(text) {
			reached["no object"]++
		}
		if _, _, err := RaiseAttempts(text); err != nil && IsObject(text) {
			reached["a counter that cannot be raised"]++
		}
	})
	for _, what := range []string{"an envelope", "poison", "a frame", "no object", "a counter that cannot be raised"} {
		if reached[what] == 0 {
			t.Errorf("the generator never writes %s", what)
		}
	}
}

// TestPropertyEncodeDecode goes the other way round: any envelope survives.
func TestPropertyEncodeDecode(t *testing.T) { // E1, E4
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return rapid.StringN(-1, 20, -1).Draw(t, name) }
		data, err := json.Marshal(rapid.MapOfN(rapid.String(), rapid.Int64(), 0, 4).Draw(t, "data"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := New("u"+strings.TrimSpace(text("urn")), text("queue"), json.RawMessage(data),
			WithID(text("id")), WithTraceID(text("trace")))
		if err != nil {
			t.Fatal(err)
		}
		want.Attempts = rapid.Int64Min(0).Draw(t, "attempts")
		want.DeadLetter = rapid.SampledFrom([]string{"", `{"a": 1}`, "null"}).Draw(t, "dead_letter")
		want.Extra = drawMembers(t, "x-")
		want.Meta.Extra = drawMembers(t, "m-")
		want.URN = strings.TrimSpace(want.URN)
		encoded := want.Encode()
		if !json.Valid([]byte(encoded)) {
			t.Fatalf("not JSON: %s", encoded)
		}
		got, err := Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}

func drawMembers(t *rapid.T, prefix string) []Member {
	var members []Member
	for range rapid.IntRange(0, 3).Draw(t, "extra") {
		members = append(members, Member{prefix + rapid.String().Draw(t, "name"), drawValue(t, 1)})
	}
	return members
}

func TestPropertyFrame(t *testing.T) { // F1, F2
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.String().Draw(t, "body")
		headers := rapid.MapOfN(rapid.StringN(0, 5, -1), rapid.StringN(0, 5, -1), 0, 5).Draw(t, "headers")
		want := Frame{Body: body, Attempts: -1}
		for key, value := range headers {
			if strings.TrimSpace(key) != "" && strings.TrimSpace(value) != "" {
				if want.Headers == nil {
					want.Headers = map[string]string{}
				}
				want.Headers[key] = value
			}
		}
		stored := EncodeFrame(body, headers)
		got, framed := Unframe(stored)
		if framed != (want.Headers != nil) {
			t.Fatalf("%q is framed: %t", stored, framed)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}

// asTB sends failures of a check to rapid, so that it shrinks the text.
type asTB struct {
	testing.TB
	rt *rapid.T
}

func (a asTB) Helper()                           {}
func (a asTB) Fatalf(format string, args ...any) { a.rt.Fatalf(format, args...) }
