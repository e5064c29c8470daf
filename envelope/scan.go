package envelope

import (
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays may nest, the limit of encoding/json,
// so that what Decode accepts Bind can read.
const maxDepth = 10_000

// cursor walks one JSON text from left to right, once, and checks the whole
// grammar on the way: whoever reads members with it has validated the text when
// end returns true. It never recurses (depth is data, not stack) and never goes
// back, so its work is linear in the text whatever the text is.
//
// The walk looks like this:
//
//	c := cursor{text: body}
//	c.enter()
//	for c.key() {
//		if c.name() == "meta" && c.at('{') {
//			c.enter()
//			for c.key() { … c.value() }
//			continue
//		}
//		raw := c.value()
//	}
//	ok := c.end()
//
// After key returned true exactly one value must be consumed, with value or
// with an enter and a loop of its own. Once something is wrong, every method
// becomes a no-op and key returns false, so loops need no error checks.
type cursor struct {
	text string
	pos  int // next byte to read

	depth int  // objects entered and not yet left
	first bool // the object was just entered: no comma is due

	lead             int // where the part before the current key begins: the end of the value before it, or the byte after {
	nameFrom, nameTo int // the current key, without quotes
	nameEscaped      bool
	closing          int // where the } of the object left last stands

	high uint64 // every byte of every string, or-ed: shows whether there is anything to check as UTF-8
	bad  string // what is wrong, "" while nothing is
}

// fail records the first thing wrong with the text.
func (c *cursor) fail(pos int, what string) {
	if c.bad == "" {
		c.bad, c.pos = what, pos
	}
}

// reason describes the failure for a PoisonError, without quoting the text.
func (c *cursor) reason() string {
	return "not one JSON object: " + c.bad + " at byte " + strconv.Itoa(c.pos)
}

// at reports whether the value about to be read begins with b.
func (c *cursor) at(b byte) bool {
	return c.bad == "" && c.pos < len(c.text) && c.text[c.pos] == b
}

// enter steps into the object that begins here. It does not look at the depth:
// how deep a walk enters is fixed in its code, two levels at most; what the text
// decides is how deep the values go, and value checks that.
func (c *cursor) enter() {
	if c.bad != "" {
		return
	}
	i := skipSpace(c.text, c.pos)
	if i >= len(c.text) || c.text[i] != '{' {
		c.fail(i, "no opening brace")
		return
	}
	c.depth++
	c.first = true
	c.pos = i + 1
}

// key reads the next key of the object and the colon after it. It returns false
// when the object ends, which it then leaves, and when something is wrong.
func (c *cursor) key() bool {
	if c.bad != "" {
		return false
	}
	s := c.text
	c.lead = c.pos
	i := skipSpace(s, c.pos)
	if i < len(s) && s[i] == '}' {
		c.closing = i
		c.pos = i + 1
		c.depth--
		c.first = false
		return false
	}
	if c.first {
		c.first = false
	} else {
		if i >= len(s) || s[i] != ',' {
			c.fail(i, "no comma or closing brace after a member")
			return false
		}
		i = skipSpace(s, i+1)
	}
	end, escaped := c.quoted(i)
	if end < 0 {
		return false
	}
	c.nameFrom, c.nameTo, c.nameEscaped = i+1, end-1, escaped
	i = skipSpace(s, end)
	if i >= len(s) || s[i] != ':' {
		c.fail(i, "no colon after a key")
		return false
	}
	c.pos = skipSpace(s, i+1)
	return true
}

// name returns the current key with its escapes resolved.
func (c *cursor) name() string {
	name := c.text[c.nameFrom:c.nameTo]
	if c.nameEscaped {
		return unescape(name)
	}
	return name
}

// value reads the value that begins here and returns its raw text, "" when it
// is not valid.
func (c *cursor) value() string {
	if c.bad != "" {
		return ""
	}
	from := c.pos
	end := c.skipValue(from)
	if end < 0 {
		return ""
	}
	c.pos = end
	return c.text[from:end]
}

// end reports whether the text ends here, but for white space, and was valid
// all the way.
func (c *cursor) end() bool {
	if c.bad != "" {
		return false
	}
	if i := skipSpace(c.text, c.pos); i < len(c.text) {
		c.fail(i, "text after the object")
		return false
	}
	// No byte above 0x7F has a meaning in JSON outside strings, so one check of
	// the whole text is enough, and ASCII texts need none.
	if c.high&highBits != 0 && !utf8.ValidString(c.text) {
		c.fail(len(c.text), "invalid UTF-8")
		return false
	}
	return true
}

// object walks the whole text without looking at its members, and reports
// whether it is one valid object.
func (c *cursor) object() bool {
	c.enter()
	for c.key() {
		c.value()
	}
	return c.end()
}

const (
	onesBytes = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// quoted reads the string whose opening quote must stand at i. It returns the
// index after the closing quote, -1 when the string is not valid, and whether
// the string holds an escape.
//
// It looks at eight bytes at a time. The arithmetic marks bytes that need a
// look: below 0x20, a quote, or a backslash. Borrows may mark bytes after the
// first hit wrongly, never before it, and only the first is used.
func (c *cursor) quoted(i int) (end int, escaped bool) {
	s := c.text
	if i >= len(s) || s[i] != '"' {
		c.fail(i, "no string where one is due")
		return -1, false
	}
	high := c.high
	i++
	for {
		for i+8 <= len(s) {
			x := load8(s, i)
			high |= x
			quote := x ^ onesBytes*'"'
			slash := x ^ onesBytes*'\\'
			hits := ((x - onesBytes*0x20) & ^x) | ((quote - onesBytes) & ^quote) | ((slash - onesBytes) & ^slash)
			if hits &= highBits; hits != 0 {
				i += bits.TrailingZeros64(hits) >> 3
				break
			}
			i += 8
		}
		if i >= len(s) {
			c.fail(i, "a string without end")
			return -1, false
		}
		b := s[i]
		switch {
		case b == '"':
			c.high = high
			return i + 1, escaped
		case b == '\\':
			n := escapeLen(s, i)
			if n == 0 {
				c.fail(i, "an invalid escape in a string")
				return -1, false
			}
			escaped = true
			i += n
		case b < 0x20:
			c.fail(i, "a control character in a string")
			return -1, false
		default: // the last bytes of the text, fewer than eight
			high |= uint64(b)
			i++
		}
	}
}

// load8 reads eight bytes of s in little-endian order; the compiler makes one
// load of it.
func load8(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// escapeLen returns the length of the escape at s[i], a backslash: 2, 6, or 0
// when it is none.
func escapeLen(s string, i int) int {
	if i+1 >= len(s) {
		return 0
	}
	switch s[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if i+6 <= len(s) && hex4(s[i+2:i+6]) >= 0 {
			return 6
		}
	}
	return 0
}

// hex4 reads four hexadecimal digits, -1 when they are not.
func hex4(s string) rune {
	var r rune
	for i := range 4 {
		b := s[i]
		switch {
		case '0' <= b && b <= '9':
			b -= '0'
		case 'a' <= b && b <= 'f':
			b -= 'a' - 10
		case 'A' <= b && b <= 'F':
			b -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(b)
	}
	return r
}

// skipSpace returns the index of the first byte from i on that is not JSON
// white space.
func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}
