package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/publisher"
)

const messageURN = "urn:babel:load"

// stamp is the data of a message, without its padding.
type stamp struct {
	Run string `json:"run"`
	Seq int64  `json:"seq"`
	// At is the intended send time, Unix nanoseconds.
	At int64 `json:"at"`
}

// mint makes the messages of a run.
type mint struct {
	runID    string
	head     string // of the data, up to the sequence number
	smallest int    // bytes of an envelope without padding and sequence number
	payload  int    // bytes of every envelope, at least
	padding  string
}

// newMint measures an empty message, to know how much padding fills an envelope up.
func newMint(runID, queue string, payload int) (*mint, error) {
	m := &mint{runID: runID, head: `{"run":"` + runID + `","seq":`}
	empty, err := envelope.New(messageURN, queue, m.data(0, time.Now().UnixNano()))
	if err != nil {
		return nil, fmt.Errorf("loadtest: first message: %w", err)
	}
	m.smallest, m.payload = len(empty.Encode())-len("0"), payload
	m.padding = strings.Repeat("abcdefghijklmnopqrstuvwxyz012345", max(0, payload-m.smallest)/32+1)
	return m, nil
}

// data is the data of a message, with the padding that makes its envelope as long as asked. An envelope that
// is longer without any padding stays so.
func (m *mint) data(seq, at int64) json.RawMessage {
	number := strconv.FormatInt(seq, 10)
	fill := max(0, m.payload-m.smallest-len(number))
	b := make([]byte, 0, len(m.head)+len(number)+len(`,"at":,"pad":""}`)+19+fill)
	b = append(b, m.head...)
	b = append(b, number...)
	b = append(b, `,"at":`...)
	b = strconv.AppendInt(b, at, 10)
	b = append(b, `,"pad":"`...)
	b = append(b, m.padding[:fill]...)
	return append(b, `"}`...)
}

func (m *mint) message(seq, at int64) publisher.Message {
	return publisher.Message{URN: messageURN, Data: m.data(seq, at)}
}

// read is the sequence number in a stored value, whatever layout, frame or dead letter record it is in. It is
// -1 for what is no message of this run.
func (m *mint) read(value string) int64 {
	if frame, ok := envelope.Unframe(value); ok {
		value = frame.Body
	}
	e, err := envelope.Decode(value)
	if err != nil {
		return -1
	}
	var s stamp
	if err := e.Bind(&s); err != nil || s.Run != m.runID {
		return -1
	}
	return s.Seq
}
