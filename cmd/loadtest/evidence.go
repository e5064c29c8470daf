package main

// What a run with faults knows of a message beside its starts and successes. It tells whether a settlement acted
// although its lease was gone, which the counts alone cannot: such an ack removes a message that was handled, after all.
//
//   - A message is *stolen* when it is in no key, and every success of it was overtaken: a later run had started by
//     then. A later run means that the lease of the earlier one had run out and the message was reserved again, so
//     the earlier one's ack comes too late and must do nothing (L4, Z4); who removed the message?
//   - A delivery number is *repeated* when two runs saw the same one. In the zset layout each reservation raises it, and
//     only what no handler had is put back as it was, so the second of the two is a copy that a late settlement made.
//
// Runs are numbered as they start. That is the order of their reservations as well, since a pool starts nothing under
// a lease that has run out; but not for a consumer whose clock is wrong, so its messages prove nothing here.

const (
	firstDelivery = 12                 // the bit of delivery number 1
	lastDelivery  = 32 - firstDelivery // numbers beyond are not kept
)

// evidence is a part of a tally.
type evidence struct {
	Stolen      int64
	Repeated    int64
	Unexplained int64 // duplicates of messages that only consumers with sound leases ran
}

// add adds what is known of one message.
func (v *evidence) add(marks mark, duplicates int64) {
	gone := marks&anywhere == 0
	if gone && marks&overtaken != 0 && marks&(finished|misjudged) == 0 {
		v.Stolen++
	}
	if marks&repeated != 0 {
		v.Repeated++
	}
	if marks&(misjudged|unrenewed) == 0 {
		v.Unexplained += duplicates
	}
}

// delivered notes a delivery number, where deliveries have one of their own.
func (b *books) delivered(seq, number int64) {
	if number < 1 || number > lastDelivery {
		return
	}
	e, bit := b.entry(seq), mark(1)<<(firstDelivery+number-1)
	if e.add(bit)&bit != 0 {
		e.add(repeated)
	}
}

// judge notes whether a run that is about to return nil was overtaken.
func (b *books) judge(seq int64, run int) {
	e := b.entry(seq)
	if int(e.starts.Load()) > run {
		e.add(overtaken)
	} else {
		e.add(finished)
	}
}
