package envelope

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRaiseAttempts(t *testing.T) { // Z3
	t.Parallel()
	for _, tc := range []struct {
		name, text, want string
		attempts         int64
	}{
		{"empty object", `{}`, `{"attempts":1}`, 1},
		{"absent", `{"a":1}`, `{"a":1,"attempts":1}`, 1},
		{"absent, spaced", " { \"a\" : 1 }\n", " { \"a\" : 1 ,\"attempts\":1}\n", 1},
		{"absent, empty, spaced", "{ \n}", "{ \n\"attempts\":1}", 1},
		{"spaced", `{"attempts" : 5 , "a":1}`, `{"attempts" : 6 , "a":1}`, 6},
		{"one digit more", `{"attempts":99}`, `{"attempts":100}`, 100},
		{"the last counts", `{"attempts":"x","a":1,"attempts":5}`, `{"attempts":"x","a":1,"attempts":6}`, 6},
		{"spelt with escapes", `{"attempts":3,"\u0061ttempts":5}`, `{"attempts":3,"\u0061ttempts":6}`, 6},
		{"deeper ones stay", `{"a":{"attempts":1},"b":[{"attempts":2}]}`, `{"a":{"attempts":1},"b":[{"attempts":2}],"attempts":1}`, 1},
		{"inside strings", `{"s":"\"attempts\":5}","attempts":0}`, `{"s":"\"attempts\":5}","attempts":1}`, 1},
		{"other case", `{"Attempts":5}`, `{"Attempts":5,"attempts":1}`, 1},
		{"largest", `{"attempts":9007199254740990}`, `{"attempts":9007199254740991}`, MaxCounter},
		{"a frame", `{"__bq_frame":1,"body":"{}","attempts":1}`, `{"__bq_frame":1,"body":"{}","attempts":2}`, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, n, err := RaiseAttempts(tc.text)
			if err != nil || n != tc.attempts {
				t.Fatalf("got %d, %v; want %d", n, err, tc.attempts)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// notEditable are texts whose counter must not be touched.
var notEditable = map[string]string{
	"empty":         ``,
	"array":         `[{"attempts":1}]`,
	"scalar":        `5`,
	"cut short":     `{"attempts":1`,
	"tail alone":    `{"data":{"x":1,"attempts":5}`,
	"trailing text": `{"attempts":1}{}`,
	"bad elsewhere": `{"x":01,"attempts":1}`,
	"invalid UTF-8": "{\"x\":\"\xff\",\"attempts\":1}",
	"string":        `{"attempts":"1"}`,
	"null":          `{"attempts":null}`,
	"true":          `{"attempts":true}`,
	"object":        `{"attempts":{}}`,
	"negative":      `{"attempts":-1}`,
	"minus zero":    `{"attempts":-0}`,
	"fraction":      `{"attempts":1.0}`,
	"exponent":      `{"attempts":1e1}`,
	"at the bound":  `{"attempts":9007199254740991}`,
	"over int64":    `{"attempts":9223372036854775808}`,
	"last is bad":   `{"attempts":1,"attempts":"1"}`,
	"too deep":      `{"x":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`,
}

func TestRaiseAttemptsRefuses(t *testing.T) { // Z3
	t.Parallel()
	for name, text := range notEditable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, n, err := RaiseAttempts(text)
			if !errors.Is(err, ErrNotEditable) || got != "" || n != 0 {
				t.Errorf("got %q, %d, %v", got, n, err)
			}
		})
	}
}

func TestRequeueEdit(t *testing.T) { // L6
	t.Parallel()
	for _, tc := range []struct{ name, stored, want string }{
		{"bare", canonical, strings.Replace(canonical, `"attempts":0`, `"attempts":1`, 1)},
		{"bare without a counter", `{"a":1}`, `{"a":1,"attempts":1}`},
		{"frame without a counter inside", `{"__bq_frame":1,"body":"{\"a\":1}"}`, `{"__bq_frame":1,"body":"{\"a\":1,\"attempts\":1}"}`},
		{"frame around an empty object", `{"__bq_frame":1,"body":"{}"}`, `{"__bq_frame":1,"body":"{\"attempts\":1}"}`},
		{"outer counter stays", `{"attempts":7,"__bq_frame":1,"body":"{\"attempts\":9}"}`, `{"attempts":7,"__bq_frame":1,"body":"{\"attempts\":10}"}`},
		{"every spelling stays", ` {"body":"{\"\u0061\":\"\u00e9\ud83d\ude00é😀\\u0041\/\",\u0022attempts\u0022:\u0034\u0032 , \"z\":[]}" ,"headers":{"b":"2","a":5},"__bq_frame": 3 }`,
			` {"body":"{\"\u0061\":\"\u00e9\ud83d\ude00é😀\\u0041\/\",\u0022attempts\u0022:43 , \"z\":[]}" ,"headers":{"b":"2","a":5},"__bq_frame": 3 }`},
		{"lone surrogate before the counter", `{"__bq_frame":1,"body":"{\"a\":\"\ud800\",\"attempts\":1}"}`, `{"__bq_frame":1,"body":"{\"a\":\"\ud800\",\"attempts\":2}"}`},
		{"the last body counts", `{"__bq_frame":1,"body":"{\"attempts\":1}","body":"{\"attempts\":5}"}`, `{"__bq_frame":1,"body":"{\"attempts\":1}","body":"{\"attempts\":6}"}`},
		{"not a frame, but an object", `{"__bq_frame":1}`, `{"__bq_frame":1,"attempts":1}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := RequeueEdit(tc.stored)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRequeueEditRefuses(t *testing.T) { // L6
	t.Parallel()
	for name, text := range notEditable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := RequeueEdit(text); !errors.Is(err, ErrNotEditable) || got != "" {
				t.Errorf("bare: got %q, %v", got, err)
			}
			if name == "invalid UTF-8" {
				return // framing repairs it
			}
			framed := EncodeFrame(text, map[string]string{"a": "1"})
			if got, err := RequeueEdit(framed); !errors.Is(err, ErrNotEditable) || got != "" {
				t.Errorf("framed: got %q, %v", got, err)
			}
		})
	}
}
