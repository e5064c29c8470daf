package envelope

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Reasons of a dead letter (D2).
const (
	ReasonFailed     = "failed"      // the handler failed and no delivery is left
	ReasonUnknownURN = "unknown_urn" // no handler knows the URN
	ReasonPoison     = "poison"      // the body is not acceptable (E3)
)

// MaxErrorText is the most bytes of error text a dead-letter record keeps (D2,
// B42).
const MaxErrorText = 2 << 10

// DeadLetter says why and where a message was given up (D2).
type DeadLetter struct {
	// Reason is one of ReasonFailed, ReasonUnknownURN and ReasonPoison.
	Reason string

	// Error is the error's text, nil for null. At most MaxErrorText bytes of it
	// are kept, cut between characters.
	Error *string

	// Exception is the Go type of the error, nil for null.
	Exception *string

	// FailedAt is the time of the decision in Unix milliseconds.
	FailedAt int64

	// OriginalQueue is the logical name of the queue the message was consumed
	// from.
	OriginalQueue string

	// Attempts is the counter as the handler saw it.
	Attempts int64
}

// DeadLetterRecord returns text with d as its dead_letter member, the last one,
// placed right before the closing brace (D2). Older dead_letter members at the
// top level are taken out first, all of them, wherever they stand and however
// they are spelt. Every other byte stays, white space at the end included.
//
// The text is the unframed body. One that is not one JSON object (see IsObject)
// comes back as it is: it goes into the dead-letter queue raw.
func DeadLetterRecord(text string, d DeadLetter) string {
	out, kept, closing, ok := withoutDeadLetter(make([]byte, 0, len(text)+len(d.OriginalQueue)+256), text)
	if !ok {
		return text
	}
	if kept > 0 {
		out = append(out, ',')
	}
	out = append(out, `"dead_letter":`...)
	out = d.appendTo(out)
	return string(append(out, text[closing:]...))
}

// withoutDeadLetter appends to dst the text up to its closing brace, without the dead_letter members at the top level. It
// also returns how many members are left, and where the closing brace stands in text; ok is false when text is not
// one JSON object.
func withoutDeadLetter(dst []byte, text string) (_ []byte, kept, closing int, ok bool) {
	c := cursor{text: text}
	c.enter()
	dst = append(dst, text[:c.pos]...)
	for c.key() {
		// White space around members stays. Of the commas, one goes with every
		// member taken out: the one before it, or, where nothing before it was
		// kept, the one after it, which is the one before the next member.
		before := text[c.lead : c.nameFrom-1]
		member := c.nameFrom - 1
		dead := c.name() == "dead_letter"
		c.value()
		if comma := strings.IndexByte(before, ','); comma >= 0 && (dead || kept == 0) {
			dst = append(dst, before[:comma]...)
			before = before[comma+1:]
		}
		dst = append(dst, before...)
		if !dead && c.bad == "" {
			dst = append(dst, text[member:c.pos]...)
			kept++
		}
	}
	if !c.end() {
		return nil, 0, 0, false
	}
	return append(dst, text[c.lead:c.closing]...), kept, c.closing, true
}

// appendTo writes the block with its keys in the contract's order.
func (d *DeadLetter) appendTo(dst []byte) []byte {
	dst = append(dst, `{"reason":`...)
	dst = appendQuoted(dst, d.Reason)
	dst = append(dst, `,"error":`...)
	if d.Error == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendQuoted(dst, cutText(*d.Error, MaxErrorText))
	}
	dst = append(dst, `,"exception":`...)
	if d.Exception == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendQuoted(dst, *d.Exception)
	}
	dst = append(dst, `,"failed_at":`...)
	dst = strconv.AppendInt(dst, d.FailedAt, 10)
	dst = append(dst, `,"original_queue":`...)
	dst = appendQuoted(dst, d.OriginalQueue)
	dst = append(dst, `,"attempts":`...)
	dst = strconv.AppendInt(dst, d.Attempts, 10)
	return append(dst, `,"lang":"`+Lang+`"}`...)
}

// cutText returns the beginning of s as valid UTF-8 of at most limit bytes,
// never part of a character. It looks at no more of s than it returns, so a
// huge error text costs nothing.
func cutText(s string, limit int) string {
	if len(s) <= limit && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s { // yields U+FFFD for each byte that is not UTF-8
		if b.Len()+utf8.RuneLen(r) > limit {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
