package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"unicode/utf8"
)

// encoder encodes data behind the text it holds already.
type encoder struct {
	text []byte
	json *json.Encoder // writes to text
}

// keptBuffer is the largest buffer kept for the next message; one huge message must not occupy memory for
// ever.
const keptBuffer = 64 << 10

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.reset()
	return e
}}

func (e *encoder) reset() {
	e.json = json.NewEncoder((*sink)(e))
	e.json.SetEscapeHTML(false)
}

// sink is an encoder as encoding/json sees it.
type sink encoder

func (s *sink) Write(p []byte) (int, error) {
	s.text = append(s.text, p...)
	return len(p), nil
}

// encodeData returns the compact JSON object of data.
func encodeData(data any) (string, error) {
	e := encoders.Get().(*encoder)
	e.text = e.text[:0]
	err := e.appendData(data)
	text := string(e.text)
	if cap(e.text) <= keptBuffer {
		encoders.Put(e)
	}
	return text, err
}

// appendData appends the compact JSON object of data. After an error, text ends with whatever was written.
func (e *encoder) appendData(data any) error {
	start := len(e.text)
	raw, isRaw := data.(json.RawMessage)
	switch {
	case data == nil || isRaw && len(raw) == 0:
		e.text = append(e.text, '{', '}')
		return nil
	case isRaw:
		buf := bytes.NewBuffer(e.text)
		if err := json.Compact(buf, raw); err != nil {
			return fmt.Errorf("%w: %w", ErrDataNotObject, err)
		}
		e.text = buf.Bytes()
	default:
		if err := e.json.Encode(data); err != nil {
			e.reset() // an encoder need not go on after an error
			return fmt.Errorf("envelope: encode data: %w", err)
		}
		e.text = e.text[:len(e.text)-1] // the newline
	}
	written := e.text[start:]
	if !isRaw && string(written) == "null" {
		e.text = append(e.text[:start], '{', '}')
		return nil
	}
	// That it is one JSON value, encoding/json has made sure of. But raw parts may hold what it lets pass:
	// invalid UTF-8, and one level of nesting more than the envelope around them leaves, which takes a bracket
	// on either side a level.
	if written[0] == '{' && len(written) < 2*maxDepth && utf8.Valid(written) {
		return nil
	}
	if c := (cursor{text: string(written), depth: 1}); !c.object() {
		return fmt.Errorf("%w: %s", ErrDataNotObject, c.reason())
	}
	return nil
}
