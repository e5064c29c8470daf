package flow

import "time"

// ReserveRequest is what a reserver asks of a store.
type ReserveRequest struct {
	Most      int   // most messages, at least 1
	Bytes     int64 // budget of body bytes; the message that crosses it is the last one taken
	FirstPop  int   // guess of how many messages fit the budget, at least 1
	Tokens    int   // zset: notify tokens the wait before took (0 or 1)
	Migration int   // most expired or due messages to move to ready first, 1 to 1,000
	Solo      *Solo // taken by the caller for one message in its last chance; nil = such messages stay in ready (B21)
}

// Reserved is the answer to a ReserveRequest. Beside an error only Sent and Call are set, if anything.
type Reserved struct {
	Lease  *Lease        // the messages, nil when there are none
	Poison []string      // zset: raw bodies the script put in the dead letters, because attempts cannot be edited (Z3)
	Moved  int           // expired or due messages moved to ready
	Left   int           // messages left in ready
	Paused bool          // the queue is paused; nothing was reserved
	Sent   time.Time     // when the call was sent; leases are counted from here
	Took   time.Duration // how long the call was away
	Solo   bool          // one of the messages holds the request's Solo
	Lost   int64         // messages of this queue that workers were lost with, as far as they are counted
	Back   int           // messages in their last chance that went to the tail of ready, as the request had no Solo for them
	Call   string        // beside ErrAmbiguous: names the call for a Recall; empty where the layout has no names
}

// Depth is the number of messages in each place of a queue.
type Depth struct {
	Ready, InFlight, Delayed, DeadLetters int64
	// Oldest is the created_at of the head of ready, in Unix milliseconds; 0 where ready is empty, or the head has none.
	Oldest int64
}

// Layout is how a queue lies in Redis. The zero value stands for the default of its place, in the end Legacy.
type Layout uint8

// The layouts of the contract.
const (
	Legacy Layout = iota + 1 // reliable list queue: ready, processing, deadlines (rules L)
	Zset                     // compatible with Laravel's queue: ready, delayed, reserved, notify (rules Z)
)

// String is the layout's name in flags, logs and docs.
func (l Layout) String() string {
	if l == Zset {
		return "zset"
	}
	return "legacy"
}

// Resendable reports whether an operation may be sent again when the reply of the first try was lost. An
// uncharged return in the zset layout may not: the text it wrote can have been reserved anew as the very same
// member, and the second try would end that reservation (Z4).
func (l Layout) Resendable(op Op) bool {
	return l != Zset || op != Return && op != HandBack
}

// Audit is what an audit of a queue found.
type Audit struct {
	InFlight int64    // values in processing, or members reserved
	Leases   int64    // deadlines, or members reserved
	Orphans  int64    // legacy: values without a deadline (L7); -1 when there was too much to read
	Dangling int64    // legacy: deadlines without a value
	Endless  int64    // zset: members that never expire
	Values   []string // legacy: some of the orphans, in list order
}
