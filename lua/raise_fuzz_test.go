package lua

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
)

// raiseAlone runs the fragments that the reserve script edits with, on one body that is stored nowhere. Returns
// nothing for a body that is refused; else the edited body, the first and last position of what was replaced, and
// '1' where the place is canonical.
func raiseAlone() *script {
	return made("the attempts edit", mustRead("lib/raise.lua")+`
local body = ARGV[1]
local first, last, before, number, canonical = raise(body)
if not first then
  return {}
end
return {splice(body, first, last, before .. spell(number)), tostring(first), tostring(last), canonical and '1' or '0'}
`)
}

// FuzzRaise compares the edit of attempts inside Redis with the reference, on a server of its own for each worker.
func FuzzRaise(f *testing.F) { // Z3, B08, B30, B31
	for _, v := range loadVectors(f).AttemptsEdit {
		f.Add(v.Ready)
	}
	drawing.Lock()
	for seed := range 40 {
		f.Add(document.Example(seed))
		f.Add(mutated.Example(seed))
		f.Add(garbage.Example(seed))
	}
	drawing.Unlock()
	for _, text := range []string{
		`{"attempts":"` + strings.Repeat("9", 40) + `"}`, `{"x":"` + strings.Repeat(`\"`, 20), `{"x":[[[[]]]],"attempts" : 3 }`,
		`{"x":",\"attempts\":7}`, `{"x":",\"attempts\":7}"}`, `{"a":{"attempts":1},"attempts":9007199254740990}`,
		`{"x":1,"attempts":007}`, `{"attempts":00 }`, `{]`, `{"attempts":1]`, `{"a":[}}`,
	} {
		f.Add(text)
	}
	client := testredis.Client(f, testredis.Shared(f).URL())
	edit := raiseAlone()
	f.Fuzz(func(t *testing.T, body string) {
		reply, err := newCall(edit, nil, 1).arg(&body).run(context.Background(), client)
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		checkRaise(t, body, reply)
	})
}

// checkRaise holds an edit against the reference. Where the reference refuses a text because it is not one JSON
// object, whose grammar the script does not check, the script may edit it, within the same bounds, as long as a
// consumer calls it poison before and after.
func checkRaise(t *testing.T, body string, reply []string) {
	t.Helper()
	want, _, err := envelope.RaiseAttempts(body)
	if len(reply) == 0 {
		if err == nil {
			t.Fatalf("%q is refused, the reference makes it %q", body, want)
		}
		return
	}
	edited := reply[0]
	switch {
	case err == nil && edited != want:
		t.Fatalf("%q becomes %q, the reference makes it %q", body, edited, want)
	case err != nil && envelope.IsObject(body):
		t.Fatalf("%q becomes %q, the reference refuses it: %v", body, edited, err)
	case err != nil:
		for _, text := range []string{body, edited} {
			if _, err := envelope.Decode(text); err == nil {
				t.Fatalf("%q becomes %q, of which the reference refuses the first, but %q is accepted", body, edited, text)
			}
		}
	}
	place, err := numbers(zsetReserve, reply[1:], 2)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := wrongEdit(body, edited, int(place[0])-1, int(place[1])); wrong != "" {
		t.Fatalf("%q becomes %q: %s", body, edited, wrong)
	}
	if reply[3] == "1" { // the client finds the place by itself
		r := flow.Reservation{Text: edited, Edit: tailEdit(edited)}
		if r.Ready() != body {
			t.Fatalf("%q becomes %q, and comes back as %q", body, edited, r.Ready())
		}
	}
}

// wrongEdit says what an edit of body[from:to] changes beside the attempts, if anything.
func wrongEdit(body, edited string, from, to int) string {
	if from < 0 || to < from || to > len(body) {
		return fmt.Sprintf("it replaces the bytes from %d to %d", from, to)
	}
	old, before, behind := body[from:to], body[:from], body[to:]
	if !strings.HasPrefix(edited, before) || !strings.HasSuffix(edited[from:], behind) {
		return "other bytes have changed"
	}
	number := edited[from : len(edited)-len(behind)]
	if old == "" {
		if strings.TrimPrefix(number, ",") != `"attempts":1` || strings.Trim(behind, " \t\r\n") != "}" {
			return "it does not insert one attempt before the end"
		}
		return ""
	}
	n, err := strconv.ParseInt(old, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != old || n < 0 || n >= envelope.MaxCounter {
		return fmt.Sprintf("it replaces %q", old)
	}
	if number != strconv.FormatInt(n+1, 10) {
		return fmt.Sprintf("it makes %q of %q", number, old)
	}
	return ""
}
