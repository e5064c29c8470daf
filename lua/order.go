package lua

import "sync/atomic"

const (
	// leastByToken is the smallest batch worth a try by tokens: small ones seldom are what stands at the head.
	leastByToken = 32
	// fullAfterMiss is how many batches are sent in full after one whose tokens were not come across.
	fullAfterMiss = 32
)

// order guesses whether a batch stands near the head of deadlines, where a token is enough to find a reservation.
// A false guess costs one more call. Safe for concurrent use.
type order struct {
	full atomic.Int32 // batches still to be sent in full
}

// expected tells whether the tokens of a batch of n are enough.
func (o *order) expected(n int) bool {
	if n < leastByToken {
		return false
	}
	if left := o.full.Load(); left > 0 {
		o.full.Store(left - 1)
		return false
	}
	return true
}

// found notes how the last try went.
func (o *order) found(seen, unseen int) {
	if unseen > seen {
		o.full.Store(fullAfterMiss)
	}
}
