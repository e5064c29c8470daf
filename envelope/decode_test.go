package envelope

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeReadsEveryField(t *testing.T) {
	t.Parallel()
	text := ` {"attempts":7,"x":[1, 2],"dead_letter":{"reason":"failed"},"job":"urn:b","trace_id":"t-1",
		"meta":{"v":{"a": 1e400},"created_at":1749132727000,"schema_version":1,"lang":"php","queue":"q","id":"i"},
		"data":{"big":9007199254740993,"f":1.0},"y":"\u00e9"}` + "\r\n\t "
	want := Envelope{
		URN: "urn:b", TraceID: "t-1", Data: `{"big":9007199254740993,"f":1.0}`,
		Meta: Meta{ID: "i", Queue: "q", Lang: "php", CreatedAt: 1749132727000,
			Extra: []Member{{"v", `{"a": 1e400}`}}},
		Attempts: 7, DeadLetter: `{"reason":"failed"}`,
		Extra: []Member{{"x", `[1, 2]`}, {"y", `"\u00e9"`}},
	}
	got, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDecodeURN(t *testing.T) { // E3
	t.Parallel()
	for _, tc := range []struct{ name, top, urn string }{
		{"job", `"job":"a"`, "a"},
		{"job before alias", `"job":"a","urn":"b"`, "a"},
		{"alias alone", `"urn":" b "`, "b"},
		{"alias for a blank job", `"job":"\u2003\t","urn":"b"`, "b"},
		{"alias for an empty job", `"urn":"b","job":""`, "b"},
		{"a bad alias does not matter beside job", `"job":"a","urn":5`, "a"},
		{"key with escapes", `"j\u006fb":"a"`, "a"},
		{"value with escapes", `"job":"\u0061\/\n\u00e9\ud83d\ude00\"\\"`, "a/\né😀\"\\"},
		{"a lone surrogate", `"job":"a\ud800b\udc00\ud800\u0041"`, "a\uFFFDb\uFFFD\uFFFDA"},
		{"last job counts", `"job":5,"job":"a"`, "a"},
		{"last job counts, however spelt", `"job":"a","\u006aob":"b"`, "b"},
		{"last alias counts", `"urn":5,"urn":"a"`, "a"},

		{"none", `"attempts":0`, ""},
		{"job of another type", `"job":5`, ""},
		{"job of another type beside the alias", `"job":5,"urn":"b"`, ""},
		{"null job beside the alias", `"job":null,"urn":"b"`, ""},
		{"last job counts and is bad", `"job":"a","job":5`, ""},
		{"blank both", `"job":" ","urn":"\u00a0"`, ""},
		{"alias of another type", `"urn":["b"]`, ""},
		{"other case", `"Job":"a","URN":"b"`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e, err := Decode(body(tc.top))
			if tc.urn == "" {
				if !errors.Is(err, ErrPoison) || e.URN != "" {
					t.Fatalf("got %q, %v; want poison", e.URN, err)
				}
				return
			}
			if err != nil || e.URN != tc.urn {
				t.Errorf("got %q, %v; want %q", e.URN, err, tc.urn)
			}
		})
	}
}

// TestDecodeAliasIsCarried checks that an alias which did not name the message
// is not lost in re-encoding, and that one which did is not written twice.
func TestDecodeAliasIsCarried(t *testing.T) {
	t.Parallel()
	for top, want := range map[string]string{
		`"urn":{"a": 1},"job":"a","x":1`: `,"x":1,"urn":{"a": 1}}`,
		`"urn":"b"`:                      `"attempts":0}`,
	} {
		e, err := Decode(body(top))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Encode(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %s, want the end %s", top, got, want)
		}
	}
}

func TestDecodePoison(t *testing.T) { // E3, and the reason names the rule broken
	t.Parallel()
	with := func(old, replacement string) string {
		text := strings.Replace(canonical, old, replacement, 1)
		if text == canonical {
			t.Fatalf("%s is not in the canonical body", old)
		}
		return text
	}
	for _, tc := range []struct{ name, body, reason string }{
		{"empty", "", "no opening brace"},
		{"white space", " \n", "no opening brace"},
		{"array", "[]", "no opening brace"},
		{"null", "null", "no opening brace"},
		{"string", `"str"`, "no opening brace"},
		{"byte order mark", "\uFEFF" + canonical, "no opening brace"},
		{"brace", "{", "no string"},
		{"cut short", canonical[:len(canonical)-1], "no comma or closing brace"},
		{"cut in data", canonical[:strings.Index(canonical, "1042")], "the text ends early"},
		{"trailing text", canonical + "x", "text after the object"},
		{"trailing NUL", canonical + "\x00", "text after the object"},
		{"form feed is no white space", "\f" + canonical, "no opening brace"},
		{"trailing comma", with(`"attempts":0`, `"attempts":0,`), "no string"},
		{"bare key", with(`"attempts"`, `attempts`), "no string"},
		{"invalid UTF-8 in a value", with("orders:created", "orders:\xff"), "invalid UTF-8"},
		{"invalid UTF-8 in data", with("order_id", "order_\xc3"), "invalid UTF-8"},
		{"overlong UTF-8", with("order_id", "order_\xc0\xaf"), "invalid UTF-8"},
		{"surrogate in UTF-8", with("order_id", "order_\xed\xa0\x80"), "invalid UTF-8"},

		{"no trace_id", with(`"trace_id"`, `"trace"`), "trace_id"},
		{"trace_id of another type", with(`"7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b"`, `7`), "trace_id"},
		{"blank trace_id", with(`7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b`, `\t\u2029`), "trace_id"},
		{"no data", with(`"data"`, `"Data"`), "data"},
		{"data null", with(`{"order_id":1042}`, `null`), "data"},
		{"data array", with(`{"order_id":1042}`, `[]`), "data"},
		{"data string", with(`{"order_id":1042}`, `"{}"`), "data"},
		{"last data counts", with(`{"order_id":1042}`, `{},"data":[]`), "data"},
		{"no meta", with(`"meta"`, `"META"`), "meta"},
		{"meta array", with(`"meta":{`, `"meta":[],"m":{`), "meta"},
		{"last meta counts", with(`"attempts":0`, `"meta":null`), "meta"},
		{"last meta has no version", with(`"attempts":0`, `"meta":{}`), "schema_version"},
		{"no version", with(`"schema_version"`, `"schemaVersion"`), "schema_version"},
		{"version 2", with(`"schema_version":1`, `"schema_version":2`), "schema_version"},
		{"version 1.0", with(`"schema_version":1`, `"schema_version":1.0`), "schema_version"},
		{"version 1e0", with(`"schema_version":1`, `"schema_version":1e0`), "schema_version"},
		{"version 10", with(`"schema_version":1`, `"schema_version":10`), "schema_version"},
		{"version true", with(`"schema_version":1`, `"schema_version":true`), "schema_version"},
		{"last version counts", with(`"schema_version":1`, `"schema_version":1,"schema_version":2`), "schema_version"},
		{"attempts -1", with(`"attempts":0`, `"attempts":-1`), "attempts"},
		{"attempts -0", with(`"attempts":0`, `"attempts":-0`), "attempts"},
		{"attempts 1.0", with(`"attempts":0`, `"attempts":1.0`), "attempts"},
		{"attempts 1e2", with(`"attempts":0`, `"attempts":1e2`), "attempts"},
		{"attempts null", with(`"attempts":0`, `"attempts":null`), "attempts"},
		{"attempts object", with(`"attempts":0`, `"attempts":{}`), "attempts"},
		{"attempts over int64", with(`"attempts":0`, `"attempts":9223372036854775808`), "attempts"},
		{"attempts of many digits", with(`"attempts":0`, `"attempts":`+strings.Repeat("9", 400)), "attempts"},
		{"last attempts counts", with(`"attempts":0`, `"attempts":0,"attempts":"0"`), "attempts"},
		{"leading zero", with(`"attempts":0`, `"attempts":01`), "no comma or closing brace"},
		{"a frame", EncodeFrame(canonical, map[string]string{"a": "1"}), "job"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e, err := Decode(tc.body)
			var poison *PoisonError
			if !errors.As(err, &poison) || !errors.Is(err, ErrPoison) {
				t.Fatalf("got %v, want a *PoisonError", err)
			}
			if !strings.Contains(poison.Reason, tc.reason) || !strings.Contains(err.Error(), poison.Reason) {
				t.Errorf("%q does not speak of %q", err, tc.reason)
			}
			if diff := cmp.Diff(Envelope{}, e); diff != "" {
				t.Errorf("the envelope of a poison body is not zero\n%s", diff)
			}
		})
	}
}

func TestDecodeLargestAttempts(t *testing.T) {
	t.Parallel()
	e, err := Decode(body(`"job":"a","attempts":9223372036854775807`))
	if err != nil || e.Attempts != 1<<63-1 {
		t.Errorf("got %d, %v", e.Attempts, err)
	}
}

// TestDecodeMetaOfUnexpectedTypes covers what E3 does not ask for: the fields
// are zero, and the values survive re-encoding.
func TestDecodeMetaOfUnexpectedTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, meta, encoded string }{
		{"missing", `{"schema_version":1}`,
			`{"id":"","queue":"","lang":"","schema_version":1,"created_at":0}`},
		{"other types", `{"id":5,"queue":null,"v":1,"lang":["go"],"schema_version":1,"created_at":"now"}`,
			`{"schema_version":1,"v":1,"id":5,"queue":null,"lang":["go"],"created_at":"now"}`},
		{"created_at not plain", `{"id":"i","schema_version":1,"created_at":1.0}`,
			`{"id":"i","queue":"","lang":"","schema_version":1,"created_at":1.0}`},
		{"created_at over int64", `{"id":"i","schema_version":1,"created_at":9223372036854775808}`,
			`{"id":"i","queue":"","lang":"","schema_version":1,"created_at":9223372036854775808}`},
		{"created_at negative", `{"id":"i","schema_version":1,"created_at":-1}`,
			`{"id":"i","queue":"","lang":"","schema_version":1,"created_at":-1}`},
		{"last counts", `{"id":"i","id":5,"lang":5,"lang":"l","schema_version":2,"schema_version":1,"created_at":null,"created_at":3}`,
			`{"queue":"","lang":"l","schema_version":1,"created_at":3,"id":5}`},
		{"unknown keys twice", `{"v":1,"v":2,"schema_version":1}`,
			`{"id":"","queue":"","lang":"","schema_version":1,"created_at":0,"v":1,"v":2}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e, err := Decode(`{"job":"a","trace_id":"t","data":{},"meta":` + tc.meta + `}`)
			if err != nil {
				t.Fatal(err)
			}
			want := `{"job":"a","trace_id":"t","data":{},"meta":` + tc.encoded + `,"attempts":0}`
			if diff := cmp.Diff(want, e.Encode()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeForbiddenKeys(t *testing.T) { // E5
	t.Parallel()
	text := `{"job":"a","trace_id":"t","data":{},"timestamp":1,"t\u0069mestamp":2,"source":"top","max_retries":1,` +
		`"meta":{"schema_version":1,"ts":1,"timestamp":3,"source":"s","attempts":[],"max_retries":{},"ts":2}}`
	e, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/timestamp", "/meta/max_retries", "/meta/attempts", "/meta/source", "/meta/ts"}
	if diff := cmp.Diff(want, e.ForbiddenKeys); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again, err := Decode(e.Encode())
	if err != nil {
		t.Fatal(err)
	}
	e.ForbiddenKeys = nil
	if diff := cmp.Diff(e, again); diff != "" {
		t.Errorf("re-encoded (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Member{{"source", `"top"`}, {"max_retries", "1"}}, again.Extra); diff != "" {
		t.Errorf("the same names at the top are ordinary (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Member{{"timestamp", "3"}}, again.Meta.Extra); diff != "" {
		t.Errorf("the same name in meta is ordinary (-want +got)\n%s", diff)
	}
}

func TestDecodeForbiddenKeyOfAReplacedMeta(t *testing.T) {
	t.Parallel()
	e, err := Decode(`{"timestamp":1,"meta":{"ts":1,"v":1},"job":"a","trace_id":"t","data":{},"meta":{"schema_version":1}}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/timestamp"}, e.ForbiddenKeys); diff != "" || e.Meta.Extra != nil {
		t.Errorf("an earlier meta still counts: %v\n%s", e.Meta.Extra, diff)
	}
}

func mustDecode(t *testing.T, text string) Envelope {
	t.Helper()
	e, err := Decode(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return e
}

func TestBind(t *testing.T) { // E6
	t.Parallel()
	e := mustDecode(t, strings.Replace(canonical, "1042", "9007199254740993", 1))
	var order struct {
		OrderID int64 `json:"order_id"`
	}
	if err := e.Bind(&order); err != nil || order.OrderID != 9007199254740993 {
		t.Errorf("got %d, %v", order.OrderID, err)
	}
	var wrong struct {
		OrderID string `json:"order_id"`
	}
	var typeError *json.UnmarshalTypeError
	if err := e.Bind(&wrong); !errors.As(err, &typeError) || !strings.HasPrefix(err.Error(), "envelope: ") {
		t.Errorf("got %v", err)
	}
	var empty map[string]any
	if err := (Envelope{}).Bind(&empty); err != nil || empty == nil {
		t.Errorf("empty data: got %v, %v", empty, err)
	}
}

func TestCounter(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]int64{
		"0": 0, "7": 7, "10": 10, "9223372036854775807": 1<<63 - 1,
		"": -1, "-1": -1, "+1": -1, "1.0": -1, "1e1": -1, `"1"`: -1, "9223372036854775808": -1, "1_0": -1,
	} {
		if n, ok := counter(raw); ok != (want >= 0) || n != max(want, 0) {
			t.Errorf("counter(%s) = %s, %t", raw, strconv.FormatInt(n, 10), ok)
		}
	}
}
