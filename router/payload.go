package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/babelpool/babelpool/internal/jsonpath"
)

// PayloadError is the failure of a message whose data does not fit the type its handler takes. Typed dead-letters
// it. A Validate method may return one itself, to say where the fault is.
type PayloadError struct {
	// Path is where in data the fault is, as a JSONPath: $ is data itself, $.items[2].price a field of it.
	Path string
	// Expected says what should stand there.
	Expected string
	// Err is what encoding/json or Validate said; it may be nil. Error does not repeat it: an error of encoding/json
	// shows what stood in the message, which belongs in no log (B48).
	Err error
}

// Error names the field and says what was expected.
func (e *PayloadError) Error() string {
	return fmt.Sprintf("router: bad payload: %s: %s", short(e.Path, mostName), e.Expected)
}

// Unwrap is what encoding/json or Validate said.
func (e *PayloadError) Unwrap() error { return e.Err }

// mostDepth is how far down the place of a fault is looked for: each level decodes the data once more.
const mostDepth = 16

// payloadError makes a PayloadError of an error of decode on data. decode decodes a text into a fresh value.
//
// encoding/json itself names a field only of some errors, and never an element of an array. So it is asked once more,
// about each member alone: the one that fails by itself is at fault. It is asked as often as a payload is bad, and a
// bad payload does not come again.
func payloadError(data string, err error, decode func(data string) error) *PayloadError {
	at := place{path: jsonpath.Root, value: strings.TrimLeft(data, " \t\r\n"), err: err}
	for range mostDepth {
		inner, ok := at.faulty(decode)
		if !ok {
			break
		}
		at = inner
	}
	return &PayloadError{Path: at.path, Expected: expectation(at.err), Err: at.err}
}

// place is a value in data, with what has to stand around it to make a text that decodes into the whole type.
type place struct {
	path                 string
	before, value, after string
	err                  error // of decoding that text
}

// faulty looks for the first member of a value that fails without its neighbours. Where there is none, the value
// itself is at fault.
func (p place) faulty(decode func(string) error) (inner place, ok bool) {
	var shut string
	switch {
	case strings.HasPrefix(p.value, "{"):
		shut = "}"
	case strings.HasPrefix(p.value, "["):
		shut = "]"
	default:
		return place{}, false
	}
	open := p.value[:1]
	if decode(p.before+open+shut+p.after) != nil { // it fails without any member as well
		return place{}, false
	}
	values := json.NewDecoder(strings.NewReader(p.value))
	_, _ = values.Token()
	for i := 0; values.More(); i++ {
		name, step := "", jsonpath.Index(i)
		if open == "{" {
			token, _ := values.Token()
			key, _ := token.(string)
			quoted, _ := json.Marshal(key)
			name, step = string(quoted)+":", jsonpath.Key(key)
		}
		var raw json.RawMessage
		if values.Decode(&raw) != nil {
			return place{}, false // no JSON
		}
		inner := place{path: p.path + step, before: p.before + open + name, value: string(raw), after: shut + p.after}
		if inner.err = decode(inner.before + inner.value + inner.after); inner.err != nil {
			return inner, true
		}
	}
	return place{}, false
}

// expectation says what should have stood where err arose, without what did stand there.
func expectation(err error) string {
	var mismatch *json.UnmarshalTypeError
	var date *time.ParseError
	switch {
	case errors.As(err, &mismatch):
		got, _, _ := strings.Cut(mismatch.Value, " ") // "number 4111…": the rest is the message's own text
		return fmt.Sprintf("expected %s, got %s", nameOf(mismatch.Type), got)
	case errors.As(err, &date):
		return "expected a time as RFC 3339 has it"
	case strings.HasPrefix(err.Error(), "json: unknown field "): // it has no type of its own
		return "is not a field of the handler's type"
	}
	return strings.TrimPrefix(err.Error(), "envelope: bind data: ")
}

// nameOf is what JSON calls the values that a Go type takes, and the type.
func nameOf(t reflect.Type) string {
	var name string
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		name = "an integer"
	case reflect.Float32, reflect.Float64:
		name = "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		name = "an array"
	case reflect.Struct, reflect.Map:
		name = "an object"
	default:
		return t.String()
	}
	return fmt.Sprintf("%s (%s)", name, t)
}
