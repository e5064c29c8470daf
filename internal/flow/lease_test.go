package flow

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const s = time.Second

func TestLeaseRunsOutASecondEarly(t *testing.T) { // L5
	t.Parallel()
	for _, renew := range []bool{true, false} {
		b, l := NewBook(90*s, renew, 0), made(1)
		b.Add(l, at(100*s))
		if l.Expired(at(189*s - 1)) {
			t.Error("expired before retryAfter - 1 s")
		}
		if !l.Expired(at(189 * s)) {
			t.Error("still held at retryAfter - 1 s")
		}
		if left, ok := l.Remaining(at(180 * s)); !ok || left != 9*s {
			t.Errorf("%s remain (%t), want 9 s", left, ok)
		}
		if b.Renews() != renew {
			t.Errorf("Renews is %t", b.Renews())
		}
	}
}

func TestDisabledLeaseNeverRunsOut(t *testing.T) { // L5
	t.Parallel()
	b, l := NewBook(0, true, 0), made(1)
	b.Add(l, at(0))
	if l.Expired(at(1000 * time.Hour)) {
		t.Error("expired")
	}
	if _, ok := l.Remaining(at(0)); ok {
		t.Error("has an end")
	}
	if due, wait := b.Due(at(1000 * time.Hour)); b.Renews() || due != nil || wait != 0 {
		t.Errorf("renewed: due %d, wait %s", len(due), wait)
	}
	finish(b, &l.Items[0])
}

func TestWithoutRenewalNothingIsDue(t *testing.T) {
	t.Parallel()
	b, l := NewBook(3*s, false, 0), made(1)
	b.Add(l, at(0))
	if due, wait := b.Due(at(time.Hour)); due != nil || wait != 0 {
		t.Errorf("due %d, wait %s", len(due), wait)
	}
	b.AwaitRenewal(t.Context(), l) // returns
	b.AwaitFresh(t.Context())
}

// step is what Due says at one time.
type step struct {
	now  time.Duration
	due  []int // positions in the order of adding
	wait time.Duration
}

func expect(t *testing.T, b *Book, leases []*Lease, steps ...step) {
	t.Helper()
	for _, want := range steps {
		due, wait := b.Due(at(want.now))
		var got []int
		for _, l := range due {
			for i := range leases {
				if leases[i] == l {
					got = append(got, i)
				}
			}
		}
		if diff := cmp.Diff(want.due, got); diff != "" || wait != want.wait {
			t.Errorf("at %s: wait %s, want %s; due (-want +got):\n%s", want.now, wait, want.wait, diff)
		}
	}
}

// TestDue renews at a third of the lease, the oldest first, although calls end in another order than they
// were sent in.
func TestDue(t *testing.T) {
	t.Parallel()
	b := NewBook(90*s, true, 0)
	expect(t, b, nil, step{0, nil, 0})
	var leases []*Lease
	for _, sent := range []time.Duration{10 * s, 12 * s, 11 * s, 0} {
		l := made(1)
		b.Add(l, at(sent))
		leases = append(leases, l)
	}
	expect(t, b, leases,
		step{0, nil, 30 * s},
		step{30*s - 1, nil, 1},
		step{30 * s, []int{3}, 10 * s},
		step{41 * s, []int{3, 0, 2}, s},
		step{50 * s, []int{3, 0, 2, 1}, 0},
	)
	b.Renewed(leases[3], at(50*s))
	b.Renewed(leases[2], at(51*s))
	b.Renewed(leases[0], at(50*s))
	expect(t, b, leases,
		step{50 * s, []int{1}, 30 * s},
		step{80 * s, []int{1, 3, 0}, s},
		step{81 * s, []int{1, 3, 0, 2}, 0},
	)
	if leases[3].Expired(at(139*s-1)) || !leases[3].Expired(at(139*s)) {
		t.Error("a renewed lease does not run out 89 s after the renewal was sent")
	}
	finish(b, &leases[1].Items[0])
	expect(t, b, leases, step{80 * s, []int{3, 0}, s})
}

func TestWake(t *testing.T) {
	t.Parallel()
	b := NewBook(90*s, true, 0)
	woken := func() bool {
		select {
		case <-b.Wake():
			return true
		default:
			return false
		}
	}
	first, second := made(1), made(1)
	b.Add(first, at(0))
	if !woken() {
		t.Error("the first lease does not wake the renewer")
	}
	b.Add(second, at(s))
	if woken() {
		t.Error("a later lease wakes the renewer, which knows when to look")
	}
	finish(b, &first.Items[0])
	finish(b, &second.Items[0])
	b.Add(made(1), at(2*s))
	b.Add(made(1), at(s)) // wakes too, as it is due first; one token is enough
	if !woken() || woken() {
		t.Error("want one wake-up after the book was empty")
	}
}

func handles(held []Held) []string {
	var names []string
	for _, h := range held {
		names = append(names, h.Handle)
	}
	return names
}

func TestRenewable(t *testing.T) {
	t.Parallel()
	b, l := NewBook(90*s, true, 60*s), made(5)
	b.Add(l, at(0))
	const early, late, settled, finished = 1, 2, 3, 4 // and 0 stays buffered
	l.Items[early].Start(at(10*s), nil)
	l.Items[late].Start(at(20*s), nil)
	l.Items[settled].Start(at(10*s), nil)
	l.Items[settled].Settle() // its settlement is on its way to Redis and needs the lease
	finish(b, &l.Items[finished])

	for _, tc := range []struct {
		now  time.Duration
		want []string
	}{
		{70 * s, []string{"handle 0", "handle 1", "handle 2", "handle 3"}},
		{70*s + 1, []string{"handle 0", "handle 2", "handle 3"}},
		{1000 * s, []string{"handle 0", "handle 3"}},
	} {
		if diff := cmp.Diff(tc.want, handles(b.Renewable(l, at(tc.now), nil))); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", tc.now, diff)
		}
	}
	if got := b.Renewable(l, at(0), []Held{{Handle: "before"}}); len(got) != 5 || got[0].Handle != "before" {
		t.Errorf("does not append: %v", handles(got))
	}
	if h := b.Renewable(l, at(0), nil)[1]; h.Reservation != &l.Items[1] {
		t.Error("a handle of another reservation")
	}

	unlimited, l2 := NewBook(90*s, true, 0), made(1)
	unlimited.Add(l2, at(0))
	l2.Items[0].Start(at(s), nil)
	if got := unlimited.Renewable(l2, at(1e6*s), nil); len(got) != 1 {
		t.Error("without a limit the renewal ends")
	}
}

func TestFinishLetsGoOfTexts(t *testing.T) {
	t.Parallel()
	b, l := NewBook(90*s, true, 0), made(2)
	l.Items[0].Edit = Edit{At: 5, Length: 1, Old: "x"}
	b.Add(l, at(0))
	finish(b, &l.Items[0])
	if r := &l.Items[0]; r.Handle != "" || r.Text != "" || r.Edit.Old != "" {
		t.Errorf("kept: %q, %q, %q", r.Handle, r.Text, r.Edit.Old)
	}
	if r := &l.Items[1]; r.Handle == "" || r.Text == "" {
		t.Error("the neighbour's texts are gone")
	}
	if due, _ := b.Due(at(time.Hour)); len(due) != 1 {
		t.Error("the lease ended before its last reservation")
	}
	finish(b, &l.Items[1])
	if due, _ := b.Due(at(time.Hour)); len(due) != 0 {
		t.Error("the lease outlives its last reservation")
	}
	b.Renewed(l, at(s)) // a renewal that was away meanwhile
	if due, _ := b.Due(at(time.Hour)); len(due) != 0 {
		t.Error("a late renewal brings a finished lease back")
	}
}
