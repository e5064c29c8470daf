package main

import (
	"sync"
	"sync/atomic"

	"github.com/babelpool/babelpool/internal/chaos"
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

	// With faults only; see evidence.go.
	finished  // a success when no later run had started
	overtaken // a success when one had
	repeated  // a delivery number came twice
	misjudged // a consumer with a wrong clock ran it
	unrenewed // one that does not renew leases ran it

	anywhere = inReady | inFlight | inDelayed | inDeadLetters
)

// entry is what is known of one message. Publishers, handlers and the final read write it, in several processes
// perhaps.
type entry struct {
	starts    atomic.Uint32 // handler runs
	successes atomic.Uint32 // handler runs that returned nil
	marks     atomic.Uint32 // from bit firstDelivery on: the delivery numbers that were seen
}

func (e *entry) add(m mark) (before mark) { return mark(e.marks.Or(uint32(m))) }

// leafSize is in entries. A leaf has 768 KiB, a multiple of every system's memory page.
const leafSize = 1 << 16

type leaf [leafSize]entry

// books are the entries of all messages of a run, by sequence number. They grow while messages are published,
// leaf by leaf, so that an entry never moves and handlers take no lock.
//
// With several processes they lie in memory that all share. So a success is in the books before its message
// can be acked, whatever kills the process next; a record on its way through a pipe would die with it, and its
// message would pass for lost. And all processes count a message's starts together.
type books struct {
	grow   sync.Mutex
	leaves atomic.Pointer[[]*leaf] // replaced whole when it grows
	*bookHead
	shared *sharedMemory // nil when the books are this process's own

	stored    atomic.Int64 // messages marked stored
	doubtful  atomic.Int64 // messages marked doubtful
	strangers atomic.Int64 // bodies in the queue's keys that are no message of this run
}

// bookHead is what all processes share beside the entries.
type bookHead struct {
	size   atomic.Int64   // sequence numbers opened, by the process that publishes
	faults chaos.Counters // those in consumers; a consumer that is killed takes none along
}

// newBooks makes books of this process's own.
func newBooks() *books {
	b := &books{bookHead: &bookHead{}}
	b.leaves.Store(&[]*leaf{})
	return b
}

// newSharedBooks makes books in shared memory, which must outlast them.
func newSharedBooks(m *sharedMemory) (*books, error) {
	b := &books{shared: m}
	b.leaves.Store(&[]*leaf{})
	var err error
	b.bookHead, err = m.head()
	return b, err
}

// open makes room for the sequence numbers below size.
func (b *books) open(size int64) error {
	b.grow.Lock()
	defer b.grow.Unlock()
	if size <= b.size.Load() {
		return nil
	}
	err := b.addLeaves(size, func(i int) (*leaf, error) {
		if b.shared == nil {
			return &leaf{}, nil
		}
		return b.shared.newLeaf(i)
	})
	if err == nil {
		b.size.Store(size)
	}
	return err
}

// follow makes room for a message that another process has opened; known is false when none has.
func (b *books) follow(seq int64) (known bool, err error) {
	if seq < 0 || seq >= b.size.Load() {
		return false, nil
	}
	if seq < int64(len(*b.leaves.Load()))*leafSize {
		return true, nil
	}
	b.grow.Lock()
	defer b.grow.Unlock()
	return true, b.addLeaves(seq+1, b.shared.leaf)
}

// addLeaves adds what is missing for the sequence numbers below size. Called with the lock.
func (b *books) addLeaves(size int64, next func(i int) (*leaf, error)) error {
	leaves := *b.leaves.Load()
	for int64(len(leaves))*leafSize < size {
		p, err := next(len(leaves))
		if err != nil {
			return err
		}
		leaves = append(leaves, p) // what others read behind the old length does not change
	}
	b.leaves.Store(&leaves)
	return nil
}

// entry is the entry of a message that open or follow has made room for, nil when none was opened for it.
func (b *books) entry(seq int64) *entry {
	if seq < 0 || seq >= b.size.Load() {
		return nil
	}
	return &(*b.leaves.Load())[seq/leafSize][seq%leafSize]
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
func (b *books) started(seq int64) (run int, err error) {
	known, err := b.follow(seq)
	if err != nil || !known {
		return 0, err
	}
	return int(b.entry(seq).starts.Add(1)), nil
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

	Evidence evidence // with faults only
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
		t.Evidence.add(marks, max(0, successes-1))
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
	return t.Lost == 0 && accounted == t.Published && t.Strangers == 0 && t.Forked == 0 && t.Denied == 0 &&
		t.Evidence.Stolen == 0 && t.Evidence.Repeated == 0
}
