package envelope

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string, in exactly the spelling of
// encoding/json with SetEscapeHTML(false): the characters / < > & and all
// others that are not ASCII stay literal (E1), invalid UTF-8 becomes U+FFFD. As
// there, U+2028 and U+2029 are the exception and are escaped: the contract does
// not ask for them literally, a reader sees no difference, and so a URN and the
// data next to it follow one rule.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s)
	return append(dst, '"')
}

// appendEscaped is appendQuoted without the quotes.
func appendEscaped(dst []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		// Eight bytes at a time, as cursor.quoted looks at them. Nearly no string has anything to escape.
		for i+8 <= len(s) && plain8(load8(s, i)) {
			i += 8
		}
		if i == len(s) {
			break
		}
		b := s[i]
		if b < utf8.RuneSelf {
			if b >= 0x20 && b != '"' && b != '\\' {
				i++
				continue
			}
			dst = append(dst, s[from:i]...)
			switch b {
			case '"', '\\':
				dst = append(dst, '\\', b)
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xF])
			}
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[from:i]...)
			dst = append(dst, `\ufffd`...)
			from = i + size
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, s[from:i]...)
			dst = append(dst, `\u202`...)
			dst = append(dst, hexDigits[r&0xF])
			from = i + size
		}
		i += size
	}
	return append(dst, s[from:]...)
}

// plain8 reports whether eight bytes are ASCII that no JSON string escapes.
// Borrows may make it say no wrongly, never yes.
func plain8(x uint64) bool {
	quote := x ^ onesBytes*'"'
	slash := x ^ onesBytes*'\\'
	return (x|(x-onesBytes*0x20)|(quote-onesBytes)&^quote|(slash-onesBytes)&^slash)&highBits == 0
}

// stringValue returns the text of a raw JSON value that the cursor has
// validated, false when the value is not a string.
func stringValue(raw string) (string, bool) {
	if raw == "" || raw[0] != '"' {
		return "", false
	}
	return unescape(raw[1 : len(raw)-1]), true
}

// unescape resolves the escapes of a validated JSON string given without its
// quotes. Without escapes it returns the very string.
func unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s)) // no escape is shorter than what it stands for
	for i >= 0 {
		b.WriteString(s[:i])
		r, size := escapeAt(s, i)
		b.WriteRune(r)
		s = s[i+size:]
		i = strings.IndexByte(s, '\\')
	}
	b.WriteString(s)
	return b.String()
}

// escapedIndex returns where byte n of the unescaped text begins in the escaped
// one. Byte n must begin a character.
func escapedIndex(escaped string, n int) int {
	i := 0
	for n > 0 {
		if escaped[i] != '\\' {
			i++
			n--
			continue
		}
		r, size := escapeAt(escaped, i)
		i += size
		n -= utf8.RuneLen(r)
	}
	return i
}

// escapeAt returns the character that the validated escape at s[i] stands for
// and the number of bytes it takes: 12 for a surrogate pair. A lone surrogate
// stands for U+FFFD, as it does in encoding/json.
func escapeAt(s string, i int) (r rune, size int) {
	switch b := s[i+1]; b {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r = hex4(s[i+2 : i+6])
	default: // the quote, the backslash and the slash stand for themselves
		return rune(b), 2
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if i+12 <= len(s) && s[i+6] == '\\' && s[i+7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(s[i+8:i+12])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}
