package envelope

import (
	"encoding/json"
	"fmt"
)

// Redriven returns a dead letter record as it goes back to a queue: without its dead_letter members, and with attempts 0.
// Every other byte stays. It undoes DeadLetterRecord up to the attempts.
//
// The error matches ErrNotEditable when the record is not one JSON object: such a one went into the dead letters raw.
func Redriven(record string) (string, error) {
	out, _, closing, ok := withoutDeadLetter(make([]byte, 0, len(record)), record)
	if !ok {
		return "", fmt.Errorf("%w: not one JSON object", ErrNotEditable)
	}
	text := string(append(out, record[closing:]...))
	e, raw, problem := findAttempts(text)
	if problem != "" {
		return "", fmt.Errorf("%w: %s", ErrNotEditable, problem)
	}
	if raw != "" {
		e.insert = ""
	}
	return text[:e.from] + e.insert + "0" + text[e.to:], nil
}

// ReadDeadLetter reads the dead_letter block of a record, the last one. It is false when there is none, or none that can be
// read, as in what went into the dead letters raw.
func ReadDeadLetter(record string) (DeadLetter, bool) {
	block := ""
	c := cursor{text: record}
	c.enter()
	for c.key() {
		dead := c.name() == "dead_letter"
		if value := c.value(); dead {
			block = value
		}
	}
	if !c.end() || block == "" {
		return DeadLetter{}, false
	}
	var b struct {
		Reason        string  `json:"reason"`
		Error         *string `json:"error"`
		Exception     *string `json:"exception"`
		FailedAt      int64   `json:"failed_at"`
		OriginalQueue string  `json:"original_queue"`
		Attempts      int64   `json:"attempts"`
	}
	if json.Unmarshal([]byte(block), &b) != nil {
		return DeadLetter{}, false
	}
	return DeadLetter(b), true
}
