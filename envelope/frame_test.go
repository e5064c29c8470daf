package envelope

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncodeFrame(t *testing.T) { // F1
	t.Parallel()
	for _, tc := range []struct {
		name    string
		headers map[string]string
		want    string
	}{
		{"no headers", nil, `B"`},
		{"blank ones only", map[string]string{"": "x", " \t": "x", "a": "", "b": "\n"}, `B"`},
		{"sorted by bytes", map[string]string{"b": "2", "é": "4", "B": "1", "z": "3", "": "x"},
			`{"__bq_frame":1,"headers":{"B":"1","b":"2","z":"3","é":"4"},"body":"B\""}`},
		{"escapes", map[string]string{"a\n": "<\"\\>\x01/"},
			`{"__bq_frame":1,"headers":{"a\n":"<\"\\>\u0001/"},"body":"B\""}`},
		{"kept untrimmed", map[string]string{" a ": " b "}, `{"__bq_frame":1,"headers":{" a ":" b "},"body":"B\""}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, EncodeFrame(`B"`, tc.headers)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff("x"+tc.want, string(AppendFrame([]byte("x"), `B"`, tc.headers))); diff != "" {
				t.Errorf("AppendFrame (-want +got)\n%s", diff)
			}
		})
	}
}

func TestUnframe(t *testing.T) { // F2
	t.Parallel()
	for _, tc := range []struct {
		name, stored string
		want         Frame
	}{
		{"with white space", " {\n\"__bq_frame\" : 1 ,\"body\": \"b\"\n}\n", Frame{"b", nil, -1}},
		{"other order, unknown keys", `{"body":"b","v":[1],"headers":{"a":"1"},"__bq_frame":7}`,
			Frame{"b", map[string]string{"a": "1"}, -1}},
		{"a very new frame", `{"__bq_frame":123456789012345678901234567890,"body":"b"}`, Frame{"b", nil, -1}},
		{"empty body", `{"__bq_frame":1,"body":""}`, Frame{"", nil, -1}},
		{"escapes", `{"__bq_frame":1,"\u0062ody":"\u00e9\ud83d\ude00\"\\\/\n","h\u0065aders":{"\u0061":"\u0062"}}`,
			Frame{"é😀\"\\/\n", map[string]string{"a": "b"}, -1}},
		{"the last counts", `{"__bq_frame":0,"__bq_frame":1,"body":5,"body":"b","headers":{"x":"1"},"headers":{"a":"0","a":"1"}}`,
			Frame{"b", map[string]string{"a": "1"}, -1}},
		{"no string replaces a string", `{"__bq_frame":1,"body":"b","headers":{"a":"1","a":5,"b":"1","b":""}}`,
			Frame{"b", nil, -1}},
		{"headers sanitised", `{"__bq_frame":1,"body":"b","headers":{"":"1"," ":"1","a":" ","n":5,"o":{},"t":true,"k":"v"}}`,
			Frame{"b", map[string]string{"k": "v"}, -1}},
		{"headers of another type", `{"__bq_frame":1,"body":"b","headers":[]}`, Frame{"b", nil, -1}},
		{"outer attempts", `{"__bq_frame":1,"body":"b","attempts":2,"attempts":3}`, Frame{"b", nil, 3}},
		{"outer attempts of another type", `{"__bq_frame":1,"body":"b","attempts":"3"}`, Frame{"b", nil, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, ok := Unframe(tc.stored)
			if !ok {
				t.Fatal("taken for a bare value")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestUnframeBare(t *testing.T) { // F2
	t.Parallel()
	for name, stored := range map[string]string{
		"empty":                "",
		"an envelope":          canonical,
		"no JSON":              "__bq_frame",
		"array":                `["__bq_frame"]`,
		"marker inside":        `{"x":{"__bq_frame":1},"body":"b"}`,
		"marker in a string":   `{"x":"__bq_frame","body":"b"}`,
		"marker 1.0":           `{"__bq_frame":1.0,"body":"b"}`,
		"marker 1e0":           `{"__bq_frame":1e0,"body":"b"}`,
		"marker -1":            `{"__bq_frame":-1,"body":"b"}`,
		"marker true":          `{"__bq_frame":true,"body":"b"}`,
		"marker text":          `{"__bq_frame":"1","body":"b"}`,
		"last marker counts":   `{"__bq_frame":1,"__bq_frame":null,"body":"b"}`,
		"no body":              `{"__bq_frame":1,"Body":"b"}`,
		"body null":            `{"__bq_frame":1,"body":null}`,
		"last body counts":     `{"__bq_frame":1,"body":"b","body":{}}`,
		"cut short":            `{"__bq_frame":1,"body":"b"`,
		"trailing text":        `{"__bq_frame":1,"body":"b"} x`,
		"invalid UTF-8":        "{\"__bq_frame\":1,\"body\":\"\xff\"}",
		"bad headers":          `{"__bq_frame":1,"body":"b","headers":{"a":01}}`,
		"marker with escapes":  `{"\u005f_bq_frame":1,"body":"b"}`,
		"escaped and mentions": `{"\u005f_bq_frame":1,"body":"b","x":"__bq_frame"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := Unframe(stored)
			if ok {
				t.Error("taken for a frame")
			}
			if diff := cmp.Diff(Frame{Body: stored, Attempts: -1}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestFrameInTheZsetLayout plays F4: a frame that reached a zset queue gets an
// outer counter there and still unwraps.
func TestFrameInTheZsetLayout(t *testing.T) {
	t.Parallel()
	stored := EncodeFrame(canonical, map[string]string{"a": "1"})
	for want := int64(1); want <= 3; want++ {
		edited, n, err := RaiseAttempts(stored)
		if err != nil || n != want {
			t.Fatalf("got %d, %v", n, err)
		}
		f, ok := Unframe(edited)
		if diff := cmp.Diff(Frame{canonical, map[string]string{"a": "1"}, want}, f); !ok || diff != "" {
			t.Fatalf("%t (-want +got)\n%s", ok, diff)
		}
		stored = edited
	}
}

func TestIsForeign(t *testing.T) { // Z8
	t.Parallel()
	for text, want := range map[string]bool{
		`{"job":"App\\Jobs\\Foo@handle","data":[]}`: true,
		`{"job":""}`:                  true,
		`{"\u006aob":"x"}`:            true,
		`{"job":5,"job":"x"}`:         true,
		`{"x":{"meta":{}},"job":"x"}`: true,
		`{"job":"x","meta":{}}`:       false,
		`{"job":"x","meta":null}`:     false,
		`{"m\u0065ta":1,"job":"x"}`:   false,
		`{"job":"x","job":5}`:         false,
		`{"Job":"x"}`:                 false,
		`{}`:                          false,
		`{"job":"x"} {}`:              false,
		`{"job":"x"`:                  false,
		"{\"job\":\"\xff\"}":          false,
		`[{"job":"x"}]`:               false,
		strings.Replace(canonical, `,"meta"`, `,"data"`, 1): true,
	} {
		if got := IsForeign(text); got != want {
			t.Errorf("IsForeign(%s) is %t", text, got)
		}
	}
}
