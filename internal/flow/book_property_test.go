package flow

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is the Book as a plain slice.
type model struct {
	every  time.Duration
	leases []modelLease
}

type modelLease struct {
	lease *Lease
	next  time.Duration
	open  []int // items not finished
}

// TestBookProperty drives a Book by random adds, renewals and finishes, and compares its list after each with
// a plain model.
func TestBookProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, m := NewBook(90*s, true, 0), &model{every: 30 * s}
		now := time.Duration(0)
		sent := func(t *rapid.T) time.Duration {
			// Calls overlap a little: one sent later can end earlier.
			return now - time.Duration(rapid.IntRange(0, 3).Draw(t, "sent before"))*s
		}
		add := func(t *rapid.T) {
			l := made(rapid.IntRange(1, 3).Draw(t, "items"))
			at0 := sent(t)
			b.Add(l, at(at0))
			one := modelLease{lease: l, next: at0 + m.every}
			for i := range l.Items {
				one.open = append(one.open, i)
			}
			m.leases = append(m.leases, one)
		}
		// pick draws a lease of a kind that a new one is of: where there is none, one comes.
		pick := func(t *rapid.T, is func(modelLease) bool) *modelLease {
			if !slices.ContainsFunc(m.leases, is) {
				add(t)
			}
			var some []*modelLease
			for i := range m.leases {
				if is(m.leases[i]) {
					some = append(some, &m.leases[i])
				}
			}
			return some[rapid.IntRange(0, len(some)-1).Draw(t, "lease")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": add,
			"renew": func(t *rapid.T) {
				l := pick(t, func(modelLease) bool { return true }) // a finished one too: the call was on its way
				at0 := sent(t)
				b.Renewed(l.lease, at(at0))
				if len(l.open) > 0 {
					l.next = at0 + m.every
				}
			},
			"finish": func(t *rapid.T) {
				l := pick(t, func(l modelLease) bool { return len(l.open) > 0 })
				i := rapid.IntRange(0, len(l.open)-1).Draw(t, "item")
				finish(b, &l.lease.Items[l.open[i]])
				l.open = slices.Delete(l.open, i, i+1)
			},
			"time passes": func(t *rapid.T) { now += time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * s },
			"":            func(t *rapid.T) { m.compare(t, b, now) },
		})
	})
}

// compare checks the list's links in both directions, its order, and what Due and Renewable say.
func (m *model) compare(t *rapid.T, b *Book, now time.Duration) {
	open := slices.DeleteFunc(slices.Clone(m.leases), func(l modelLease) bool { return len(l.open) == 0 })
	slices.SortFunc(open, func(x, y modelLease) int { return cmp.Compare(x.next, y.next) })

	var forward []*Lease
	var before *Lease
	for l := b.first; l != nil; before, l = l, l.after {
		if l.prev != before || !l.linked {
			t.Fatalf("lease %d is not linked to the one before it", l.number)
		}
		if before != nil && before.next > l.next {
			t.Fatalf("lease %d stands before %d and is due later", before.number, l.number)
		}
		if forward = append(forward, l); len(forward) > len(open) {
			break
		}
	}
	if b.last != before || len(forward) != len(open) {
		t.Fatalf("the list has %d leases, want %d, or its end is wrong", len(forward), len(open))
	}
	for _, l := range m.leases {
		if linked := len(l.open) > 0; l.lease.linked != linked || slices.Contains(forward, l.lease) != linked {
			t.Fatalf("lease %d with %d open items: linked %t", l.lease.number, len(l.open), l.lease.linked)
		}
		if got := len(b.Renewable(l.lease, at(now), nil)); got != len(l.open) {
			t.Fatalf("lease %d: %d to renew, want %d", l.lease.number, got, len(l.open))
		}
	}
	due, wait := b.Due(at(now))
	n := 0
	for n < len(open) && open[n].next <= now {
		n++
	}
	var want time.Duration
	if n < len(open) {
		want = open[n].next - now
	}
	if len(due) != n || wait != want {
		t.Fatalf("at %s: %d due and %s to wait, want %d and %s", now, len(due), wait, n, want)
	}
	for i, l := range due {
		if base+int64(open[i].next) != l.next {
			t.Fatalf("due %d is of %d, want %d", i, l.next-base, open[i].next)
		}
	}
}
