package routertest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// Fate is what became of a message.
type Fate uint8

// The fates.
const (
	Acked        Fate = iota + 1 // it is gone
	Released                     // zset: it failed, and comes back after Delay
	Returned                     // it comes back after Delay without having been charged
	Requeued                     // legacy: it failed, and is at the tail of ready already
	Left                         // it comes back when its lease runs out
	HandedBack                   // the pool stopped: it is at the head of ready again
	DeadLettered                 // it is in the dead letters; Reason says why
)

var fateNames = [...]string{
	"none", "acked", "released", "returned", "requeued", "left", "handed back", "dead-lettered",
}

// String is the fate's name in the vocabulary of the docs.
func (f Fate) String() string { return fateNames[f] }

// Outcome is what became of one delivery.
type Outcome struct {
	// Fate is what became of the message.
	Fate Fate
	// Ran tells whether a handler, or OnUnknownURN, was started.
	Ran bool
	// Failed tells whether the run counts as a failure.
	Failed bool
	// Err is what the handler answered, or what the pool found instead: a *router.PanicError,
	// router.ErrUnknownURN, a *envelope.PoisonError …; nil after success.
	Err error
	// Delay is how long the message waits, in whole seconds, when it was Released or Returned.
	Delay time.Duration
	// Reason is why it was dead-lettered: failed, unknown_urn or poison (D2).
	Reason string
	// Record is what stands in the dead letters.
	Record string
	// Next is the message as its next delivery finds it; nil when there is none.
	Next *Message
	// Charged tells whether the delivery used up an attempt, so that the next one has a higher number.
	Charged bool
}

// String tells the outcome in a line, for a failing test to print.
func (o Outcome) String() string {
	text := o.Fate.String()
	if o.Reason != "" {
		text += " as " + o.Reason
	}
	if o.Delay > 0 {
		text += fmt.Sprintf(" for %s", o.Delay)
	}
	if o.Charged {
		text += ", charged"
	}
	if o.Err != nil {
		text += ": " + o.Err.Error()
	}
	return text
}

// fateOf is the fate of each operation.
var fateOf = map[flow.Op]Fate{
	flow.Ack: Acked, flow.Release: Released, flow.Return: Returned, flow.Requeue: Requeued, flow.Leave: Left,
	flow.Excuse: Left, flow.HandBack: HandedBack, flow.DeadLetter: DeadLettered,
}

// settled fills in what a settlement says. ready is the text before the delivery.
func (o *Outcome) settled(layout Layout, ready string, s flow.Settlement) {
	o.Fate = fateOf[s.Op]
	o.Delay = time.Duration(s.Delay) * time.Second
	next := ""
	switch s.Op {
	case flow.DeadLetter:
		o.buried(s.Text)
	case flow.Release, flow.Leave, flow.Excuse:
		next = s.Reservation.Text // the stored member itself comes back
	case flow.Requeue:
		next = s.Text
	case flow.Return, flow.HandBack:
		next = s.Reservation.Ready()
	case flow.Ack, flow.Forget:
	}
	if next != "" {
		o.Next = &Message{Text: next}
		o.Charged = attempts(layout, next) > attempts(layout, ready)
	}
}

// buried reads a dead letter. What is no JSON object is there as it was: only poison is (D2).
func (o *Outcome) buried(text string) {
	var record struct {
		Dead struct{ Reason string } `json:"dead_letter"`
	}
	o.Fate, o.Record, o.Reason = DeadLettered, text, envelope.ReasonPoison
	if json.Unmarshal([]byte(text), &record) == nil && record.Dead.Reason != "" {
		o.Reason = record.Dead.Reason
	}
}

// attempts is the counter that the next delivery's number is made of; -1 when there is none.
func attempts(layout Layout, text string) int64 {
	if frame, framed := envelope.Unframe(text); framed && layout == Legacy {
		text = frame.Body
	}
	_, next, err := envelope.RaiseAttempts(text)
	if err != nil {
		return -1
	}
	return next - 1
}
