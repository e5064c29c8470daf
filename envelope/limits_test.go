package envelope

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestDecodeDepth compares the depth limit with that of encoding/json, on which
// Bind depends, and checks that hostile depth is only refused.
func TestDecodeDepth(t *testing.T) {
	t.Parallel()
	nested := func(opening, end string, depth int) string { // depth levels in all, the body's object and data included
		return `{"job":"a","trace_id":"t","meta":{"schema_version":1},"data":{"d":` +
			strings.Repeat(opening, depth-2) + "1" + strings.Repeat(end, depth-2) + `}}`
	}
	for _, depth := range []int{3, 64, 65, 66, 129, 2_000, maxDepth - 1, maxDepth, maxDepth + 1, maxDepth + 2} {
		for _, pair := range [][2]string{{"[", "]"}, {`{"k":`, "}"}} {
			text := nested(pair[0], pair[1], depth)
			e, err := Decode(text)
			if valid := json.Valid([]byte(text)); (err == nil) != valid || valid != (depth <= maxDepth) {
				t.Fatalf("depth %d: Decode %v, encoding/json valid: %t", depth, err, valid)
			}
			if err == nil {
				var v map[string]json.RawMessage
				if err := e.Bind(&v); err != nil {
					t.Errorf("depth %d: Bind: %v", depth, err)
				}
			}
		}
	}
	for _, opening := range []string{"[", `{"":`} {
		hostile := `{"data":` + strings.Repeat(opening, 2_000_000)
		if _, err := Decode(hostile); !errors.Is(err, ErrPoison) {
			t.Errorf("hostile depth: %v", err)
		}
	}
}

// TestDecodeIsLinear feeds bodies on which work that grows with the square of
// the length would take minutes.
func TestDecodeIsLinear(t *testing.T) {
	t.Parallel()
	const n = 300_000
	many := func(member string) string {
		return body(`"job":"a"` + strings.Repeat(","+member, n))
	}
	for name, text := range map[string]string{
		"white space":       strings.Repeat(" ", 5<<20) + canonical + strings.Repeat("\n", 5<<20),
		"unknown keys":      many(`"k":0`),
		"equal metas":       many(`"meta":{"schema_version":1,"x":1}`),
		"forbidden keys":    many(`"timestamp":0`),
		"escaped job":       many(`"j\u006fb":"\u0061"`),
		"one long string":   body(`"job":"` + strings.Repeat(`\u0061`, n) + `"`),
		"one long key":      body(`"job":"a","` + strings.Repeat(`\\`, n) + `":0`),
		"one long number":   body(`"job":"a","x":` + strings.Repeat(`1`, n)),
		"arrays in a row":   body(`"job":"a","x":[` + strings.Repeat(`[],`, n) + `[]]`),
		"nested and undone": body(`"job":"a","x":[` + strings.Repeat(strings.Repeat("[", 70)+strings.Repeat("]", 70)+",", n/100) + `0]`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Decode(e.Encode()); err != nil || again.URN != e.URN {
				t.Errorf("re-encoded: %v", err)
			}
		})
	}
}

// TestDecodeAllocatesNothing holds the hot path to its promise. It is not
// parallel: allocations are counted for the whole process.
func TestDecodeAllocatesNothing(t *testing.T) {
	framed := EncodeFrame(canonical, map[string]string{"a": "1"})
	for name, f := range map[string]func(){
		"Decode":       func() { mustDecode(t, canonical) },
		"Unframe bare": func() { Unframe(canonical) },
		"IsObject":     func() { IsObject(framed) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// TestMixedNesting leaves objects and arrays in a pattern of no period, across
// the words in which the scanner remembers which is which, and goes on after
// each.
func TestMixedNesting(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{1, 2, 63, 64, 65, 127, 128, 129, 192, 500} {
		text := "0"
		for i := range depth {
			if i*i%7 < 3 {
				text = "[1," + text + ",2]"
			} else {
				text = `{"a":1,"k":` + text + `,"z":2}`
			}
		}
		if text = `{"x":` + text + `}`; !IsObject(text) || !json.Valid([]byte(text)) {
			t.Errorf("depth %d is refused", depth)
		}
		// One end swapped for the other kind, wherever it is, must be noticed.
		for i := strings.IndexAny(text, "]}"); i < len(text); i++ {
			var broken string
			switch text[i] {
			case ']':
				broken = text[:i] + "}" + text[i+1:]
			case '}':
				broken = text[:i] + "]" + text[i+1:]
			default:
				continue
			}
			if IsObject(broken) {
				t.Fatalf("depth %d: a wrong end at byte %d is accepted", depth, i)
			}
		}
	}
}
