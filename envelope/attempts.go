package envelope

import (
	"fmt"
	"strconv"
)

// RaiseAttempts raises the top-level attempts of text by one by editing its
// digits and returns the new text and counter. The last attempts counts when
// there are several; when there is none, ,"attempts":1 goes in right before the
// closing brace. Every other byte stays (Z3, B30, B31).
//
// The error matches ErrNotEditable when the text is not one JSON object (see
// IsObject) or when its attempts is not a plain integer from 0 to MaxCounter-1.
//
// This is the reference for the edit that the reserve script makes inside
// Redis. The two agree on every text that is valid JSON. On others this one is
// the stricter: it checks the whole grammar, which the script cannot afford, so
// the script may edit a text that Decode then calls poison.
func RaiseAttempts(text string) (edited string, attempts int64, err error) {
	e, problem := planRaise(text)
	if problem != "" {
		return "", 0, fmt.Errorf("%w: %s", ErrNotEditable, problem)
	}
	return text[:e.from] + e.insert + text[e.to:], e.attempts, nil
}

// RequeueEdit returns what a failing message's stored value becomes when it is
// requeued with attempts+1 in the legacy layout (L6). On a bare envelope that is
// RaiseAttempts. In a frame the counter of the envelope inside the body string
// is raised, and only the bytes that spell it change: headers, their order and
// the spelling of the rest of the body stay, and a counter of the frame's own is
// not touched. The error matches ErrNotEditable.
func RequeueEdit(stored string) (string, error) {
	frame, ok := parseFrame(stored)
	if !ok {
		edited, _, err := RaiseAttempts(stored)
		return edited, err
	}
	from, to := frame.from+1, frame.to-1 // without the quotes
	escaped := stored[from:to]
	e, problem := planRaise(unescape(escaped))
	if problem != "" {
		return "", fmt.Errorf("%w: body of the frame: %s", ErrNotEditable, problem)
	}
	to = from + escapedIndex(escaped, e.to)
	from += escapedIndex(escaped, e.from)
	return stored[:from] + string(appendEscaped(nil, e.insert)) + stored[to:], nil
}

// raise is the plan of one edit: text[from:to] becomes insert.
type raise struct {
	from, to int
	insert   string
	attempts int64
}

// planRaise finds the edit that raises the counter of text, or says why there
// is none.
func planRaise(text string) (e raise, problem string) {
	e, raw, problem := findAttempts(text)
	if problem != "" {
		return raise{}, problem
	}
	if raw == "" {
		e.insert, e.attempts = e.insert+"1", 1
		return e, ""
	}
	n, ok := counter(raw)
	if !ok || n >= MaxCounter {
		return raise{}, "attempts is not an integer from 0 to " + strconv.FormatInt(MaxCounter-1, 10)
	}
	e.attempts = n + 1
	e.insert = strconv.FormatInt(e.attempts, 10)
	return e, ""
}

// findAttempts finds the value of the last top-level attempts and its place. Where there is none, raw is empty, the place
// is right before the closing brace, and insert the beginning of a member to put there.
func findAttempts(text string) (e raise, raw, problem string) {
	members := 0
	c := cursor{text: text}
	c.enter()
	for ; c.key(); members++ {
		if c.name() != "attempts" {
			c.value()
			continue
		}
		e.from = c.pos
		raw = c.value()
		e.to = c.pos
	}
	if !c.end() {
		return raise{}, "", c.reason()
	}
	if raw == "" {
		e = raise{from: c.closing, to: c.closing, insert: `,"attempts":`}
		if members == 0 {
			e.insert = e.insert[1:]
		}
	}
	return e, raw, ""
}
