package flow

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// epoch anchors the lease clock: leases are compared on the monotonic clock alone, so a step of the wall
// clock cannot expire one.
var epoch = time.Now()

// Lease is the common lease of all messages of one reserve call: they expire together and are renewed
// together, so leases are a short queue of batches and not one timer per message.
type Lease struct {
	Items []Reservation

	queue   int
	number  uint64
	expires atomic.Int64 // lease clock, nanoseconds; 0 = never. Written by the Book under its lock

	// Guarded by the Book's lock.
	pending int    // items not yet finished
	next    int64  // lease clock of the next renewal
	prev    *Lease // neighbours in the Book's list
	after   *Lease
	linked  bool
	fresh   chan struct{} // closed when the lease is renewed or finished
}

// NewLease makes the lease of n reservations of a queue; the caller fills Items and gives it to Book.Add.
func NewLease(queue, n int) *Lease {
	l := &Lease{Items: make([]Reservation, n), queue: queue, pending: n}
	for i := range l.Items {
		l.Items[i].lease = l
		l.Items[i].Queue = queue
		l.Items[i].Order = i
	}
	return l
}

// Queue is the position of the queue in the pool.
func (l *Lease) Queue() int { return l.queue }

// Number orders leases of a process by the time they were made.
func (l *Lease) Number() uint64 { return l.number }

// Expired reports whether the lease may have run out on the server. What is buffered under it must not
// start before a renewal has shown that it is still held (B12).
func (l *Lease) Expired(now time.Time) bool {
	at := l.expires.Load()
	return at != 0 && clock(now) >= at
}

// Remaining is how long the lease is surely held; ok is false when it never expires.
func (l *Lease) Remaining(now time.Time) (d time.Duration, ok bool) {
	at := l.expires.Load()
	return time.Duration(at - clock(now)), at != 0
}

// clock is the lease clock's reading at now; never 0, which means "not". It is below 0 for times before the
// process began, which a test with a clock of its own may use.
func clock(now time.Time) int64 {
	if at := int64(now.Sub(epoch)); at != 0 {
		return at
	}
	return 1
}

// Book is the pool's register of leases. Reservers add, the acker finishes, the scheduler renews, workers
// and reservers wait for a renewal that is overdue. All methods are safe for concurrent use.
type Book struct {
	length time.Duration // how long a lease is surely held after a successful call; 0 = for ever
	every  time.Duration // renewal interval, 0 = no renewal
	limit  time.Duration // longest a running handler is renewed for, 0 = no limit

	mu     sync.Mutex
	first  *Lease // sorted by next: renewals all add the same interval, so appending keeps the order
	last   *Lease
	number uint64
	wake   chan struct{} // capacity 1: an added lease is due before all others
}

// NewBook makes the book of one queue. retryAfter is the lease in whole seconds, 0 when disabled; the real
// lease is up to one second shorter (L5). Renewal happens at a third of it unless renew is false. A handler
// is renewed for at most handlerLimit after its start, 0 = no limit.
func NewBook(retryAfter time.Duration, renew bool, handlerLimit time.Duration) *Book {
	b := &Book{limit: handlerLimit, wake: make(chan struct{}, 1)}
	if retryAfter > 0 {
		b.length = retryAfter - time.Second
		if renew {
			b.every = retryAfter / 3
		}
	}
	return b
}

// Renews reports whether leases of this book are renewed.
func (b *Book) Renews() bool { return b.every > 0 }

// Add registers a lease whose reserve call was sent at sent.
func (b *Book) Add(l *Lease, sent time.Time) {
	at := clock(sent)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.number++
	l.number = b.number
	if b.length == 0 {
		return
	}
	l.expires.Store(at + int64(b.length))
	if b.every == 0 {
		return
	}
	l.next = at + int64(b.every)
	b.link(l)
	if b.first == l {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
}

// Finish notes that reservations need their leases no longer, and lets go of their texts: the slot of a
// batch with one slow message would otherwise keep the bodies of all its neighbours. What ran alone lets the next one run.
func (b *Book) Finish(settled []Settlement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range settled {
		r := settled[i].Reservation
		r.Handle, r.Text, r.Edit.Old = "", "", ""
		if r.Recovery != nil && r.Recovery.Solo != nil {
			r.Recovery.Solo.Free()
		}
		r.lease.pending--
		if r.lease.pending == 0 {
			b.unlink(r.lease)
		}
	}
}

// Due returns the leases to renew now, oldest first, and how long until the next one is due (0 = there is
// none; wait on Wake). The leases stay registered; Renewed or the next Due follows.
func (b *Book) Due(now time.Time) ([]*Lease, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due []*Lease
	for l := b.first; l != nil; l = l.after {
		wait := l.next - clock(now)
		if wait > 0 {
			return due, time.Duration(wait)
		}
		due = append(due, l)
	}
	return due, 0
}

// Wake receives after a lease was added that is due before all others: the first one, or one that was found again
// after its call's reply was lost.
func (b *Book) Wake() <-chan struct{} { return b.wake }

// Held is a reservation to renew and its handle, read under the Book's lock: the acker may finish the
// reservation while the renewal is away.
type Held struct {
	Reservation *Reservation
	Handle      string
}

// Renewable appends to dst what is still to be renewed of a lease: not finished, and not beyond the time a
// handler may be renewed for.
func (b *Book) Renewable(l *Lease, now time.Time, dst []Held) []Held {
	at := clock(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range l.Items {
		r := &l.Items[i]
		if r.Handle == "" {
			continue
		}
		begun := r.begun.Load()
		if b.limit > 0 && begun != 0 && at-begun > int64(b.limit) && r.State() == Running {
			continue
		}
		dst = append(dst, Held{r, r.Handle})
	}
	return dst
}

// Renewed notes that the lease was renewed by a call sent at sent; those waiting for it go on.
func (b *Book) Renewed(l *Lease, sent time.Time) {
	at := clock(sent)
	b.mu.Lock()
	defer b.mu.Unlock()
	l.expires.Store(at + int64(b.length))
	if !l.linked {
		return
	}
	b.unlink(l)
	l.next = at + int64(b.every)
	b.link(l)
}

// AwaitRenewal blocks until the lease was renewed, was finished, or ctx ends. Without renewal it returns at
// once: an expired lease stays expired.
func (b *Book) AwaitRenewal(ctx context.Context, l *Lease) {
	b.mu.Lock()
	fresh, linked := l.fresh, l.linked
	b.mu.Unlock()
	if !linked {
		return
	}
	select {
	case <-fresh:
	case <-ctx.Done():
	}
}

// AwaitFresh blocks while the oldest lease may have run out: after an outage the renewal goes before the
// first sweep, which would give this process's own messages away (B12).
func (b *Book) AwaitFresh(ctx context.Context) {
	for ctx.Err() == nil {
		b.mu.Lock()
		oldest := b.first
		b.mu.Unlock()
		if oldest == nil || !oldest.Expired(time.Now()) {
			return
		}
		b.AwaitRenewal(ctx, oldest)
	}
}

// link puts the lease at its place by next. The place is the end but for clock readings that arrive out of
// order, so the walk is short.
func (b *Book) link(l *Lease) {
	at := b.last
	for at != nil && at.next > l.next {
		at = at.prev
	}
	l.prev, l.linked, l.fresh = at, true, make(chan struct{})
	if at == nil {
		l.after, b.first = b.first, l
	} else {
		l.after, at.after = at.after, l
	}
	if l.after == nil {
		b.last = l
	} else {
		l.after.prev = l
	}
}

// unlink takes the lease out of the list and lets those who wait for it go on.
func (b *Book) unlink(l *Lease) {
	if !l.linked {
		return
	}
	if l.prev == nil {
		b.first = l.after
	} else {
		l.prev.after = l.after
	}
	if l.after == nil {
		b.last = l.prev
	} else {
		l.after.prev = l.prev
	}
	l.prev, l.after, l.linked = nil, nil, false
	close(l.fresh)
}
