package flow

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// await runs f on its own goroutine of the bubble and returns whether it has returned by now.
func await(f func()) (returned func() bool) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	return func() bool {
		synctest.Wait()
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// TestAwaitFresh holds the order after an outage: renewal before the sweep that would give this process's own
// messages away (B12).
func TestAwaitFresh(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		goOn  func(b *Book, old, newer *Lease, cancel func())
		fresh bool
	}{
		{"nothing happens", func(*Book, *Lease, *Lease, func()) {}, false},
		{"the oldest is renewed", func(b *Book, old, _ *Lease, _ func()) { b.Renewed(old, time.Now()) }, false},
		{"only the newer is renewed", func(b *Book, _, newer *Lease, _ func()) { b.Renewed(newer, time.Now()) }, false},
		{"both are renewed", func(b *Book, old, newer *Lease, _ func()) {
			b.Renewed(old, time.Now())
			b.Renewed(newer, time.Now())
		}, true},
		{"both are finished", func(b *Book, old, newer *Lease, _ func()) {
			finish(b, &old.Items[0])
			finish(b, &newer.Items[0])
		}, true},
		{"renewed by a call that was sent too long ago", func(b *Book, old, newer *Lease, _ func()) {
			b.Renewed(newer, time.Now())
			b.Renewed(old, time.Now().Add(-2*s))
		}, false},
		{"the context ends", func(_ *Book, _, _ *Lease, cancel func()) { cancel() }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				b, old, newer := NewBook(3*s, true, 0), made(1), made(1)
				b.AwaitFresh(ctx) // an empty book is fresh
				b.Add(old, time.Now())
				b.Add(newer, time.Now().Add(s/2))
				b.AwaitFresh(ctx)
				time.Sleep(2*s - 1)
				b.AwaitFresh(ctx) // held by a nanosecond
				time.Sleep(s)     // both run out
				returned := await(func() { b.AwaitFresh(ctx) })
				if returned() {
					t.Fatal("goes on although leases may have run out")
				}
				tc.goOn(b, old, newer, cancel)
				if got := returned(); got != tc.fresh {
					t.Errorf("goes on: %t, want %t", got, tc.fresh)
				}
			})
		})
	}
}

func TestAwaitRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, l, other := NewBook(3*s, true, 0), made(1), made(1)
		b.Add(l, time.Now())
		b.Add(other, time.Now())
		first := await(func() { b.AwaitRenewal(t.Context(), l) })
		second := await(func() { b.AwaitRenewal(t.Context(), l) })
		b.Renewed(other, time.Now())
		if first() || second() {
			t.Error("another lease's renewal lets it go on")
		}
		b.Renewed(l, time.Now())
		if !first() || !second() {
			t.Error("the renewal does not let all go on")
		}
		again := await(func() { b.AwaitRenewal(t.Context(), l) })
		if again() {
			t.Error("an old renewal counts for the next wait")
		}
		finish(b, &l.Items[0])
		if !again() {
			t.Error("the finish does not let it go on")
		}
		b.AwaitRenewal(t.Context(), l) // a finished lease is not waited for

		ctx, cancel := context.WithCancel(t.Context())
		stopped := await(func() { b.AwaitRenewal(ctx, other) })
		cancel()
		if !stopped() {
			t.Error("the context's end does not end the wait")
		}
	})
}
