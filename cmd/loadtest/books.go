package main

import (
	"sync"
	"sync/atomic"
)

// mark is a set of facts about a message.
type mark uint32

const (
	stored   mark = 1 << iota // the server acknowledged the publish
	doubtful                  // the publish's reply was lost: it may be stored

	// Where the final read of the keys found it.
	inReady
	inFlight
	inDelayed
	inDeadLetters
	foundTwice // in two places, or twice in one

	anywhere = inReady | inFlight | inDelayed | inDeadLetters
)

// entry is what is known of one message. Publishers, handlers and the final read write it.
type entry struct {
	starts    atomic.Uint32 // handler runs
	successes atomic.Uint32 // handler runs that returned nil
	marks     atomic.Uint32
}

func (e *entry) add(m mark) (before mark) { return mark(e.marks.Or(uint32(m))) }

const pageSize = 1 << 13 // entries, about 100 kB

type page [pageSize]entry

// books are the entries of all messages of a run, by sequence number. They grow while messages are published,
// page by page, so that an entry never moves and handlers take no lock.
type books struct {
	grow  sync.Mutex
	pages atomic.Pointer[[]*page] // replaced whole when it grows
	size  atomic.Int64            // sequence numbers opened

	stored    atomic.Int64 // messages marked stored
	doubtful  atomic.Int64 // messages marked doubtful
	strangers atomic.Int64 // bodies in the queue's keys that are no message of this run
}

func newBooks() *books {
	b := &books{}
	b.pages.Store(&[]*page{})
	return b
}

// open makes room for the sequence numbers below size.
func (b *books) open(size int64) {
	b.grow.Lock()
	defer b.grow.Unlock()
	if size <= b.size.Load() {
		return
	}
	pages := *b.pages.Load()
	for int64(len(pages))*pageSize < size {
		pages = append(pages, &page{}) // what others read behind the old length does not change
	}
	b.pages.Store(&pages)
	b.size.Store(size)
}

// entry is the entry of a sequence number, nil when none was opened for it.
func (b *books) entry(seq int64) *entry {
	if seq < 0 || seq >= b.size.Load() {
		return nil
	}
	return &(*b.pages.Load())[seq/pageSize][seq%pageSize]
}

// published notes what became of the publish of a message.
func (b *books) published(seq int64, m mark) {
	if b.entry(seq).add(m)&m != 0 {
		return
	}
	if m == stored {
		b.stored.Add(1)
	} else {
		b.doubtful.Add(1)
	}
}

// started notes the start of a handler and returns which one of the message it is, from 1; 0 when there is no
// such message.
func (b *books) started(seq int64) int {
	e := b.entry(seq)
	if e == nil {
		return 0
	}
	return int(e.starts.Add(1))
}

// succeeded notes a handler that is about to return nil.
func (b *books) succeeded(seq int64) { b.entry(seq).successes.Add(1) }

// found notes that the final read met the message in a place.
func (b *books) found(seq int64, place mark) {
	e := b.entry(seq)
	if e == nil {
		b.strangers.Add(1)
		return
	}
	if e.add(place)&anywhere != 0 {
		e.add(foundTwice)
	}
}

// tally is the result of a run. The first seven counts after Published part it: each published message is in
// one of them.
type tally struct {
	Published int64

	Acked        int64 // succeeded, and in no key any more
	DeadLettered int64
	LeftReady    int64
	LeftInFlight int64
	LeftDelayed  int64
	Lost         int64

	Redelivered int64 // starts beyond a message's first
	Duplicated  int64 // successes beyond a message's first

	// What must not be.
	Strangers int64   // bodies nobody published
	Forked    int64   // messages that stand in the keys more than once
	Denied    int64   // messages that are there although their publish reported that nothing was stored
	LostSeqs  []int64 // some of the lost
}

const lostShown = 5

// tally closes the books. A message was published when the server acknowledged it, or else when it was seen:
// that is how a publish whose reply was lost is resolved.
func (b *books) tally() tally {
	t := tally{Strangers: b.strangers.Load()}
	for seq := range b.size.Load() {
		e := b.entry(seq)
		marks, starts, successes := mark(e.marks.Load()), int64(e.starts.Load()), int64(e.successes.Load())
		seen := starts > 0 || marks&anywhere != 0
		if marks&stored == 0 && !seen {
			continue
		}
		t.Published++
		t.Redelivered += max(0, starts-1)
		t.Duplicated += max(0, successes-1)
		if marks&(stored|doubtful) == 0 {
			t.Denied++
		}
		if marks&foundTwice != 0 {
			t.Forked++
		}
		switch {
		case marks&inFlight != 0:
			t.LeftInFlight++
		case marks&inReady != 0:
			t.LeftReady++
		case marks&inDelayed != 0:
			t.LeftDelayed++
		case marks&inDeadLetters != 0:
			t.DeadLettered++
		case successes > 0:
			t.Acked++
		default:
			t.Lost++
			if len(t.LostSeqs) < lostShown {
				t.LostSeqs = append(t.LostSeqs, seq)
			}
		}
	}
	return t
}

// balanced reports whether every published message is accounted for, once, and nothing else is there.
func (t *tally) balanced() bool {
	accounted := t.Acked + t.DeadLettered + t.LeftReady + t.LeftInFlight + t.LeftDelayed
	return t.Lost == 0 && accounted == t.Published && t.Strangers == 0 && t.Forked == 0 && t.Denied == 0
}
