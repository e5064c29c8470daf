package envelope

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRedriven(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ record, want string }{
		"ours":                     {`{"job":"u","attempts":3,"dead_letter":{"reason":"failed"}}`, `{"job":"u","attempts":0}`},
		"first of all":             {`{"dead_letter":{},"job":"u","attempts":3}`, `{"job":"u","attempts":0}`},
		"several, escaped":         {`{"dead_letter":1,"a":[ ],"dead\u005fletter":{"x":"}"},"attempts":12}`, `{"a":[ ],"attempts":0}`},
		"spaces stay":              {` { "a" : 1.0 , "dead_letter" : {} , "attempts" : 7 } `, ` { "a" : 1.0   , "attempts" : 0 } `},
		"the last attempts":        {`{"attempts":1,"attempts":5,"dead_letter":{}}`, `{"attempts":1,"attempts":0}`},
		"no attempts":              {`{"a":1,"dead_letter":{}}`, `{"a":1,"attempts":0}`},
		"nothing else":             {`{"dead_letter":{}}`, `{"attempts":0}`},
		"attempts of another kind": {`{"attempts":"many","dead_letter":{}}`, `{"attempts":0}`},
		"large numbers":            {`{"data":{"n":12345678901234567890},"attempts":9007199254740991,"dead_letter":{}}`, `{"data":{"n":12345678901234567890},"attempts":0}`},
		"nested ones stay":         {`{"data":{"dead_letter":1,"attempts":4},"attempts":4,"dead_letter":{}}`, `{"data":{"dead_letter":1,"attempts":4},"attempts":0}`},
	} {
		got, err := Redriven(c.record)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "5", "[]", `{"a":1`, `{"a":1}x`, `O:8:"stdClass":0:{}`} {
		if got, err := Redriven(bad); !errors.Is(err, ErrNotEditable) {
			t.Errorf("%q becomes %q, %v", bad, got, err)
		}
	}
}

func TestReadDeadLetter(t *testing.T) {
	t.Parallel()
	text, kind := "no \"space\"\n", "*errors.errorString"
	want := DeadLetter{Reason: ReasonFailed, Error: &text, Exception: &kind, FailedAt: 1749132727000, OriginalQueue: "orders", Attempts: 3}
	const body = `{"job":"u","dead_letter":{"reason":"old"},"attempts":3}`
	got, ok := ReadDeadLetter(DeadLetterRecord(body, want))
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%v (-want +got):\n%s", ok, diff)
	}
	for _, bad := range []string{"", "5", `{"a":1}`, `{"dead_letter":5}`, `{"dead_letter":{"failed_at":"x"}}`, `{"dead_letter":{}`} {
		if got, ok := ReadDeadLetter(bad); ok {
			t.Errorf("%q has the block %+v", bad, got)
		}
	}
}

// Whatever is dead-lettered and redriven is the same but for its attempts, as peers wrote it.
func FuzzRedriven(f *testing.F) {
	f.Add(`{"job":"u","attempts":3}`)
	f.Add(` { "a" : [ ] , "dead_letter" : {"b":"}"} , "attempts" : 7 } `)
	f.Fuzz(func(t *testing.T, body string) {
		if !IsObject(body) {
			return
		}
		record := DeadLetterRecord(body, DeadLetter{Reason: ReasonFailed})
		got, err := Redriven(record)
		if err != nil {
			t.Fatalf("%q: %v", record, err)
		}
		// Of a body without the block, and with attempts, nothing else may differ.
		first, err := Redriven(body)
		if err != nil || got != first {
			t.Fatalf("%q becomes %q by way of a record, and %q directly, %v", body, got, first, err)
		}
		if again, err := Redriven(got); err != nil || again != got {
			t.Fatalf("%q becomes %q the second time, %v", got, again, err)
		}
	})
}
