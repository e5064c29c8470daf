package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestGrammar puts every kind of value, right and wrong, into the places where
// a value may stand, and compares the verdict with that of encoding/json.
func TestGrammar(t *testing.T) {
	t.Parallel()
	values := []string{
		`null`, `true`, `false`, `nul`, `nulL`, `truex`, `tru`, `NaN`, `Infinity`, `-Infinity`, `undefined`,
		`0`, `-0`, `1`, `-1`, `10`, `01`, `-01`, `00`, `+1`, `-`, `--1`, `0x10`, `1_0`,
		`1.0`, `1.`, `.5`, `-.5`, `1.5e`, `1e5`, `1E+5`, `1e-5`, `1e`, `1e+`, `1ee5`, `1e5.5`, `0e0`, `0.0`, `1e400`,
		`""`, `"a"`, `"é😀"`, `"\u00e9"`, `"\uD83D\uDE00"`, `"\ud800"`, `"\u12"`, `"\u12g4"`, `"\uzzzz"`, `"\u"`, `"\x"`, `"\a"`, `"\"`, `"\`,
		`"\b\f\n\r\t\/\\\""`, `'a'`, `"a`, `a"`, "\"a\nb\"", "\"a\x00b\"", "\"a\x1fb\"", "\"a\x7fb\"", "\"\t\"", "\"12345678\x01\"",
		`"1234567`, `"12345678`, `"123456789`, `"1234567\"`, `"123456\u00e9"`, `"1234567\u00e9"`, `"12345678\u00e9"`,
		`{}`, `[]`, `{ }`, `[ ]`, `{]`, `[}`, `{`, `[`, `}`, `]`, `{}}`, `[]]`,
		`[1,2]`, `[1 , 2 ]`, `[1,]`, `[,1]`, `[,]`, `[1 2]`, `[1:2]`, `[1}`, `[[[]],{}]`, `[[]`,
		`{"a":1}`, `{"a" : 1 }`, `{"a":1,}`, `{,"a":1}`, `{"a"}`, `{"a":}`, `{"a",1}`, `{"a":1 "b":2}`, `{"a":1]`, `{a:1}`, `{1:1}`,
		`{"a":{"b":[{"c":null}]},"d":[]}`, `{"a":1,"a":2}`, `{"\u0061":1}`, `{"a\x":1}`,
		`1 2`, `1,`, ``, ` `, "\v1", "\u00a01", `/**/1`, `1//`,
	}
	for _, shape := range []string{
		`{"k":%s}`, `{"k":%s,"l":1}`, `{ "k" : %s }`, `{"k":{"i":%s}}`, `{"k":[%s]}`, `{"k":[0,%s,{}]}`, `{"k":[[{"x":[%s]}],1]}`, `%s`,
	} {
		for _, value := range values {
			text := fmt.Sprintf(shape, value)
			want := json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimLeft(text, " "), "{")
			if got := IsObject(text); got != want {
				t.Errorf("IsObject(%q) is %t", text, got)
			}
		}
	}
}

// TestStringLengths moves every byte that matters through every place relative
// to the eight bytes the string scanner looks at together.
func TestStringLengths(t *testing.T) {
	t.Parallel()
	for _, what := range []string{``, `\"`, `\\`, `\u00e9`, "\x01", "\x1f", "\x20", "\x7f", "é", "😀", "\xff", "\xe9", `!`, `#`, `[`, `]`, `\`} {
		for before := range 18 {
			for after := range 18 {
				text := `{"k":"` + strings.Repeat("x", before) + what + strings.Repeat("é", after/2) + strings.Repeat("y", after%2) + `"}`
				want := json.Valid([]byte(text)) && utf8.ValidString(text)
				if got := IsObject(text); got != want {
					t.Fatalf("IsObject(%q) is %t", text, got)
				}
			}
		}
	}
}

// TestQuote compares the string encoder with encoding/json, and the decoder
// with what went in.
func TestQuote(t *testing.T) { // E1
	t.Parallel()
	check := func(t rapid.TB, s string) {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			t.Fatal(err)
		}
		got := string(appendQuoted(nil, s))
		if got+"\n" != want.String() {
			t.Fatalf("got %s, encoding/json %s", got, want.String())
		}
		back, ok := stringValue(got)
		if !ok || back != string([]rune(s)) { // the conversion turns invalid bytes into U+FFFD
			t.Fatalf("%q came back as %q", s, back)
		}
		for n := range len(back) { // escapedIndex, at each character
			if utf8.RuneStart(back[n]) {
				i := escapedIndex(got[1:len(got)-1], n)
				if rest := unescape(got[1+i : len(got)-1]); rest != back[n:] {
					t.Fatalf("byte %d of %q: rest %q", n, back, rest)
				}
			}
		}
	}
	var all strings.Builder
	for r := range rune(0x250) {
		all.WriteRune(r)
	}
	check(t, all.String())
	check(t, "\u2027\u2028\u2029\u202a\ufffd\U0010ffff\x80\xff\xc3")
	rapid.Check(t, func(t *rapid.T) {
		if rapid.Bool().Draw(t, "valid") {
			check(t, rapid.String().Draw(t, "s"))
			return
		}
		check(t, string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
	})
}

// TestUnescape compares with encoding/json on strings made of escapes.
func TestUnescape(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{`\ud83d`, `\ude00`, `\u0041`, `\uFFFD`, `\uDBFF\uDFFF`, `\n`, `\\`, `\"`, `\/`, `u`, `é`, `x`, `\b`, `\f`, `\r`, `\t`})
	rapid.Check(t, func(t *rapid.T) {
		quoted := `"` + strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "") + `"`
		var want string
		if err := json.Unmarshal([]byte(quoted), &want); err != nil {
			t.Fatal(err)
		}
		if got, _ := stringValue(quoted); got != want {
			t.Fatalf("%s: got %q, want %q", quoted, got, want)
		}
	})
}

func TestStringValueOfOtherTypes(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `5`, `null`, `{}`, `[]`} {
		if got, ok := stringValue(raw); ok || got != "" {
			t.Errorf("%s read as %q", raw, got)
		}
	}
}
