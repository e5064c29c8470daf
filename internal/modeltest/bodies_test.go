package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// shapes are bodies by number and attempts. Equal numbers make equal bodies, and the number is the origin that the
// ledger counts by. What stands where decides how the attempts are raised (Z3).
var shapes = []func(n, attempts int) string{
	func(n, a int) string { return fmt.Sprintf(`{"n":%d,"attempts":%d}`, n, a) },
	func(n, a int) string { return fmt.Sprintf(`{"n":%d,"attempts":%d}`, n, a) }, // most often
	func(n, _ int) string { return fmt.Sprintf(`{"n":%d}`, n) },
	func(n, a int) string { return fmt.Sprintf(`{"attempts":%d, "data":{"attempts":7},"n":%d}`, a, n) },
	func(n, a int) string { return fmt.Sprintf(`{"attempts":"x","n":%d,"attempts":%d}`+"\n", n, a) },
	func(n, a int) string { return fmt.Sprintf(`{"n":%d,"p":"%0200d","attempts":%d}`, n, n, a) },
	// Almost too far: its raised twin is poison.
	func(n, _ int) string { return fmt.Sprintf(`{"n":%d,"attempts":9007199254740990}`, n) },
}

// foreign are bodies that are no messages: native jobs, text, and what looks like the stores' own members. The zset
// layout reserves those of them alone that are an object with attempts to raise.
var foreign = []func(n int) string{
	func(n int) string { return fmt.Sprintf(`{"n":%d,"attempts":null}`, n) },
	func(n int) string { return fmt.Sprintf(`{"n":%d,"attempts":1.0}`, n) },
	func(n int) string { return fmt.Sprintf(`{"n":%d,"job":"App\\Jobs\\Ship@handle","attempts":0}`, n) },
	func(n int) string { return fmt.Sprintf("not json %d", n) },
	func(n int) string { return fmt.Sprintf(`["n",%d]`, n) },
	func(n int) string { return strings.Repeat("ab", 16) + ":" + strconv.Itoa(n) },
	func(n int) string { return strings.Repeat("0f", 16) },
	func(n int) string { return "" },
	func(n int) string { return fmt.Sprintf("\x00\xff%d", n) },
}

// drawBodies draws n bodies. fresh makes numbers that no other body has.
func drawBodies(t *rapid.T, n int, fresh func() int) []string {
	kind := rapid.SampledFrom([]string{"equal", "few", "fresh", "few"}).Draw(t, "numbers")
	several := rapid.SliceOfN(rapid.SampledFrom(shapes), 1, 3).Draw(t, "shapes")
	attempts := rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "attempts")
	odd := rapid.SampledFrom([]int{0, 0, 0, 0, 2, 5}).Draw(t, "one foreign body in") // 0 = none
	first := rapid.IntRange(0, 3).Draw(t, "first number")
	bodies := make([]string, n)
	for i := range bodies {
		number := first
		switch kind {
		case "few":
			number = (first + i) % 4
		case "fresh":
			number = fresh()
		}
		if odd > 0 && i%odd == odd-1 {
			bodies[i] = foreign[(number+i)%len(foreign)](number)
			continue
		}
		bodies[i] = several[i%len(several)](number, attempts)
	}
	return bodies
}

var number = regexp.MustCompile(`"n":(\d+)`)

// origin is what stays of a body through all its edits and records: its number, or for a foreign one all of it.
func origin(text string) string {
	if m := number.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return text
}

const mostAttempts = 9_007_199_254_740_991 // a raised number has at most this value (Z3)

// edit is how the attempts of a text are raised: what stands at text[first:last] becomes before and the number.
type edit struct {
	text        string
	first, last int
	before      string
	number      int64
}

// raised reads where the attempts of a body stand and raises them by one (Z3). It is written on the library's decoder,
// so that it shares nothing with the script. ok is false for what cannot be raised.
func raised(text string) (e edit, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') || !json.Valid([]byte(text)) {
		return edit{}, false
	}
	e = edit{text: text, first: -1}
	members := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return edit{}, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return edit{}, false
		}
		members = true
		if key == "attempts" {
			e.last = int(d.InputOffset())
			e.first = e.last - len(bytes.TrimSpace(value))
		}
	}
	if e.first < 0 {
		e.first = strings.LastIndexByte(text, '}')
		e.last, e.before, e.number = e.first, `"attempts":`, 1
		if members {
			e.before = "," + e.before
		}
		return e, true
	}
	n, err := strconv.ParseInt(text[e.first:e.last], 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text[e.first:e.last] || n < 0 || n >= mostAttempts {
		return edit{}, false
	}
	e.number = n + 1
	return e, true
}

func (e edit) String() string {
	return e.text[:e.first] + e.before + strconv.FormatInt(e.number, 10) + e.text[e.last:]
}

// record is a dead letter's text (D2), as far as a store can tell: the text with a last key, or what is no object as it
// is.
func record(text string) string {
	at := strings.LastIndexByte(text, '}')
	if at < 0 || !json.Valid([]byte(text)) {
		return text
	}
	return text[:at] + `,"dead_letter":{"reason":"failed"}` + text[at:]
}
