package envelope

import (
	"slices"
	"strings"
)

// frameKey marks a stored value as a header frame.
const frameKey = "__bq_frame"

// Frame is a stored value taken apart (F2).
type Frame struct {
	// Body is the envelope's text. It is the stored value itself when that was
	// no frame.
	Body string

	// Headers are the frame's headers; nil when there are none. Only string
	// values count, and neither key nor value is blank.
	Headers map[string]string

	// Attempts is the frame's own counter, which the reserve script of the zset
	// layout raises when it meets a frame there (F4). It is -1 when the frame
	// has none or it is not a non-negative integer, and for a bare value.
	Attempts int64
}

// EncodeFrame puts headers around a body: the frame of F1 with its headers
// sorted by key, or the body as it is when no header is left after those with a
// blank key or a blank value are dropped.
func EncodeFrame(body string, headers map[string]string) string {
	if len(headers) == 0 {
		return body
	}
	return string(AppendFrame(nil, body, headers))
}

// AppendFrame appends to dst what EncodeFrame returns.
func AppendFrame(dst []byte, body string, headers map[string]string) []byte {
	keys := make([]string, 0, len(headers))
	size := len(`{"__bq_frame":1,"headers":{},"body":""}`) + len(body) + len(body)/8
	for key, value := range headers {
		if usableHeader(key, value) {
			keys = append(keys, key)
			size += len(key) + len(value) + len(`"":"",`)
		}
	}
	if len(keys) == 0 {
		return append(dst, body...)
	}
	slices.Sort(keys)
	dst = slices.Grow(dst, size)
	dst = append(dst, `{"`+frameKey+`":1,"headers":{`...)
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(dst, key)
		dst = append(dst, ':')
		dst = appendQuoted(dst, headers[key])
	}
	dst = append(dst, `},"body":`...)
	dst = appendQuoted(dst, body)
	return append(dst, '}')
}

// usableHeader reports whether a header survives sanitising.
func usableHeader(key, value string) bool {
	return strings.TrimSpace(key) != "" && strings.TrimSpace(value) != ""
}

// Unframe takes a stored value apart. The result is true when it is a frame: one
// JSON object with a plain integer __bq_frame of at least 1 and a string body,
// the last of equal keys counting (F2). Anything else is a bare value: Body is
// then the stored value and the result false. That is never an error.
//
// The key __bq_frame counts only in this plain spelling, not with escapes in
// it. So a value without the text __bq_frame, which nearly every value is, costs
// one substring search; looking for escaped spellings would cost as much as
// decoding, and no producer writes one. Such a value is bare and then, having
// no envelope's keys, poison.
func Unframe(stored string) (Frame, bool) {
	p, ok := parseFrame(stored)
	if !ok {
		return Frame{Body: stored, Attempts: -1}, false
	}
	f := Frame{Headers: p.headers, Attempts: -1}
	f.Body, _ = stringValue(stored[p.from:p.to])
	if n, ok := counter(p.attempts); ok {
		f.Attempts = n
	}
	return f, true
}

// framePlace is a frame as it lies in the stored value.
type framePlace struct {
	headers  map[string]string
	attempts string // raw, "" when absent
	from, to int    // the body's string, quotes included
}

func parseFrame(stored string) (framePlace, bool) {
	var p framePlace
	if !strings.Contains(stored, frameKey) {
		return p, false
	}
	version := ""
	c := cursor{text: stored}
	c.enter()
	for c.key() {
		if !c.nameEscaped && c.name() == frameKey {
			version = c.value()
			continue
		}
		switch c.name() {
		case "headers":
			p.headers = c.headers()
		case "body":
			p.from = c.pos
			c.value()
			p.to = c.pos
		case "attempts":
			p.attempts = c.value()
		default:
			c.value()
		}
	}
	return p, c.end() && atLeastOne(version) && p.to > p.from && stored[p.from] == '"'
}

// atLeastOne reports whether a raw value is a plain integer above 0, however
// large.
func atLeastOne(raw string) bool {
	return raw != "" && '1' <= raw[0] && raw[0] <= '9' && digits(raw, 0) == len(raw)
}

// headers reads the value of a headers key: the usable entries, nil when there
// are none. A later entry replaces an earlier one of the same key even when it
// is not usable itself.
func (c *cursor) headers() map[string]string {
	if !c.at('{') {
		c.value()
		return nil
	}
	var headers map[string]string
	c.enter()
	for c.key() {
		key := c.name()
		value, _ := stringValue(c.value())
		if !usableHeader(key, value) {
			delete(headers, key)
			continue
		}
		if headers == nil {
			headers = make(map[string]string)
		}
		headers[key] = value
	}
	if len(headers) == 0 {
		return nil
	}
	return headers
}
