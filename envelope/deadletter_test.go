package envelope

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// block is what the small record of these tests encodes to.
const block = `"dead_letter":{"reason":"failed","error":null,"exception":null,"failed_at":1,"original_queue":"q","attempts":2,"lang":"go"}`

func record(text string) string {
	return DeadLetterRecord(text, DeadLetter{Reason: ReasonFailed, FailedAt: 1, OriginalQueue: "q", Attempts: 2})
}

func TestDeadLetterRecord(t *testing.T) { // D2
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"empty object", `{}`, `{` + block + `}`},
		{"white space inside", "{ \n}", "{ \n" + block + `}`},
		{"white space around", " {\"a\":1 }\t\n", " {\"a\":1 ," + block + "}\t\n"},
		{"the only member", `{"dead_letter":{"a":[1]}}`, `{` + block + `}`},
		{"the only member, spaced", `{ "dead_letter" : 1 }`, `{  ` + block + `}`},
		{"first", `{"dead_letter":1,"a":1}`, `{"a":1,` + block + `}`},
		{"first, spaced", `{ "dead_letter": 1 , "a": 1 }`, `{   "a": 1 ,` + block + `}`},
		{"middle", `{"a":1,"dead_letter":1,"b":2}`, `{"a":1,"b":2,` + block + `}`},
		{"last, spaced", "{\n \"a\": 1,\n \"dead_letter\": 1\n}\n", "{\n \"a\": 1\n \n," + block + "}\n"},
		{"everywhere", `{"dead_letter":1,"dead_letter":2,"a":1,"dead_letter":3,"b":2,"dead_letter":4}`,
			`{"a":1,"b":2,` + block + `}`},
		{"nothing else, twice", `{"dead_letter":1,"dead_letter":2}`, `{` + block + `}`},
		{"spelt with escapes", `{"a":1,"dead\u005fletter":1}`, `{"a":1,` + block + `}`},
		{"deeper ones stay", `{"a":{"dead_letter":1},"s":",\"dead_letter\":1"}`,
			`{"a":{"dead_letter":1},"s":",\"dead_letter\":1",` + block + `}`},
		{"every byte stays", `{"é":"a\/b","n":1e400,"z":[],"n":1.0}`, `{"é":"a\/b","n":1e400,"z":[],"n":1.0,` + block + `}`},
		{"a poison object", `{"job":5}`, `{"job":5,` + block + `}`},

		{"empty text", ``, ``},
		{"array", `[]`, `[]`},
		{"string", `"{}"`, `"{}"`},
		{"cut short", `{"a":1`, `{"a":1`},
		{"cut short in the block", `{"a":1,"dead_letter":{`, `{"a":1,"dead_letter":{`},
		{"trailing text", `{"a":1}x`, `{"a":1}x`},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "{\"a\":\"\xff\"}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := record(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if IsObject(tc.text) && record(got) != got {
				t.Errorf("a second record differs: %s", record(got))
			}
		})
	}
}

func TestDeadLetterErrorText(t *testing.T) { // D2, B42
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"quotes", "a\"b\\\n\x00", "a\"b\\\n\x00"},
		{"at the limit", strings.Repeat("x", MaxErrorText), strings.Repeat("x", MaxErrorText)},
		{"over the limit", strings.Repeat("x", MaxErrorText+1), strings.Repeat("x", MaxErrorText)},
		{"two bytes across", "x" + strings.Repeat("é", MaxErrorText), "x" + strings.Repeat("é", MaxErrorText/2-1)},
		{"four bytes across", "xyz" + strings.Repeat("😀", MaxErrorText), "xyz" + strings.Repeat("😀", MaxErrorText/4-1)},
		{"invalid", "a\xff\xfe\xc3", "a\uFFFD\uFFFD\uFFFD"},
		{"invalid grows to the limit", strings.Repeat("\xff", MaxErrorText), strings.Repeat("\uFFFD", MaxErrorText/3)},
		{"cut inside a character at the limit", strings.Repeat("x", MaxErrorText-1) + "é", strings.Repeat("x", MaxErrorText-1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			exception := "*errors.errorString"
			text := DeadLetterRecord(canonical, DeadLetter{Reason: ReasonPoison, Error: &tc.text, Exception: &exception})
			var got struct {
				DeadLetter struct{ Reason, Error, Exception, Lang string } `json:"dead_letter"`
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil || !utf8.ValidString(text) {
				t.Fatalf("%v in %q", err, text)
			}
			if got.DeadLetter.Error != tc.want {
				t.Errorf("got %d bytes %.60q, want %d", len(got.DeadLetter.Error), got.DeadLetter.Error, len(tc.want))
			}
			if d := got.DeadLetter; d.Exception != exception || d.Reason != ReasonPoison || d.Lang != Lang {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// TestDeadLetterRecordIsLinear would take hours if taking out one block copied
// the rest.
func TestDeadLetterRecordIsLinear(t *testing.T) {
	t.Parallel()
	const n = 500_000
	text := `{"a":1` + strings.Repeat(`,"dead_letter":1,"b":2`, n) + `}`
	want := `{"a":1` + strings.Repeat(`,"b":2`, n) + `,` + block + `}`
	if record(text) != want {
		t.Error("the blocks were not taken out")
	}
}
