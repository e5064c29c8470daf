package lua

import (
	"strconv"
	"strings"
	"unicode"
)

// mostShown is the most bytes of an error's text that are kept: the text may hold a key, and a key may be long.
const mostShown = 1 << 10

// beforeArguments is how a server says that it does not know a command, or that it was renamed. What follows is the
// beginning of the arguments: of a body, or of a password (B48).
const beforeArguments = ", with args beginning with"

// shown is an error of Redis or the client library with a text that is safe to log and to hand on.
type shown struct {
	text string
	err  error
}

// Error is the text without arguments, control characters and excess.
func (e *shown) Error() string { return e.text }

// Unwrap is the error as it came.
func (e *shown) Unwrap() error { return e.err }

// show makes an error's text safe; one that is safe stays as it is.
func show(err error) error {
	given := err.Error()
	text, _, cut := strings.Cut(given, beforeArguments)
	text = oneLine(text)
	if !cut && text == given {
		return err
	}
	return &shown{text, err}
}

// oneLine spells what is not printable as Go does, and ends a text that is too long. A key with a line break or an
// escape sequence in its name must not write lines of its own, or to a terminal.
func oneLine(text string) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len() >= mostShown {
			b.WriteString("…")
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}
