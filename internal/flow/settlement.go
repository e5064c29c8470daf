package flow

import "github.com/babelpool/babelpool/envelope"

// Op is what a settlement does with a message.
type Op uint8

// The operations. Those up to Excuse change Redis through Store.Settle, HandBack through Store.HandBack; Leave
// and Forget end inside the process.
const (
	Ack        Op = iota // removes the message (L4, Z4)
	Release              // zset: the member goes to delayed, charged (Z5)
	Return               // comes back after the delay, uncharged (Z7): in zset the ready text goes to delayed, in legacy its lease ends then
	Requeue              // legacy: the text with raised attempts goes to the tail of ready (L6)
	DeadLetter           // the record goes to the dead letters (D3)
	Excuse               // as Leave, and its lease's end is not counted as a lost worker (B21)
	HandBack             // the ready text goes to the head of ready, uncharged (L9, Z11)
	Leave                // stays reserved and comes back after retryAfter (L6, Z5)
	Forget               // lost: somebody else may own it, nothing is done
)

var opNames = [...]string{"ack", "release", "return", "requeue", "dead-letter", "excuse", "hand back", "leave", "forget"}

// String is the operation's name in the vocabulary of the docs.
func (op Op) String() string { return opNames[op] }

// Reason is why a message is dead-lettered (D2). Its record says so too; here it is what can be counted.
type Reason uint8

// The reasons.
const (
	Failed     Reason = iota // the handler failed and no delivery is left
	UnknownURN               // no handler knows the URN
	Poison                   // the body is no acceptable envelope (E3), or a job of another system (Z8)
)

// ReasonOf is the reason of a record. What it does not know counts as Failed.
func ReasonOf(text string) Reason {
	switch text {
	case envelope.ReasonUnknownURN:
		return UnknownURN
	case envelope.ReasonPoison:
		return Poison
	}
	return Failed
}

// Settlement is a worker's decision about one reservation, on its way to the acker.
type Settlement struct {
	Reservation *Reservation
	Op          Op
	Reason      Reason // DeadLetter: why
	Text        string // Return in zset: ready text; Requeue: raised text; DeadLetter: record
	Delay       int64  // Release and Return: whole seconds
}

// Result is what became of one settlement or renewal in Redis.
type Result uint8

// The results.
const (
	Done    Result = iota // carried out
	Late                  // the lease was gone; nothing was touched (L4, Z4)
	Missing               // the lease was held, but processing had lost the value; nothing was pushed (L4)
	Stayed                // left to its lease, because delayed holds the same text already (Z5)
)
