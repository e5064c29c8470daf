package reserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// lost is the answer of a reserve whose reply got lost.
func lost(name string) (flow.Reserved, error) {
	return flow.Reserved{Sent: time.Now(), Call: name}, errAmbiguous
}

// loses makes the first reserve a lost one; those after it find nothing.
func (g *rig) loses(name string) {
	g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
		if call == 0 {
			return lost(name)
		}
		return flow.Reserved{Sent: time.Now()}, nil
	}
}

// TestLostReplyIsLookedUp before anything else is reserved: what the call took is handed on, with the lease of the
// lost call, and what it did not take is free again.
func TestLostReplyIsLookedUp(t *testing.T) { // B03
	t.Parallel()
	for _, tc := range []struct {
		name  string
		found flow.Reserved
		taken int
	}{
		{"all that was asked for", got(4, 10), 4},
		{"some", got(1, 10), 1},
		{"nothing: the call never arrived", flow.Reserved{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(nil)
				g.loses("a")
				g.found = func(int) (flow.Reserved, error) { return tc.found, nil }
				stop := g.running(t)
				time.Sleep(time.Second)
				events := g.happened()
				if s := names(events[:min(3, len(events))]); s != "reserve, recall a, reserve" {
					t.Fatalf("got %s", s)
				}
				if d := events[1].at; d > 150*time.Millisecond {
					t.Errorf("looked up after %s", d)
				}
				if len(g.out) != tc.taken || g.counters.Reserved.Load() != int64(tc.taken) {
					t.Fatalf("%d messages given, %d counted, want %d", len(g.out), g.counters.Reserved.Load(), tc.taken)
				}
				for i := range tc.taken {
					r := <-g.out
					if left, ok := r.Lease().Remaining(g.began); !ok || left != 89*time.Second || r.Order != i {
						t.Errorf("message %d comes as number %d, and its lease lasts %s from the lost call, want 89 s", i, r.Order, left)
					}
				}
				if n, bytes := g.slots.Free(); n != capacity-tc.taken || bytes != int64(budget-10*tc.taken) {
					t.Errorf("free: %d slots, %d bytes", n, bytes)
				}
				g.logs.Want(t, map[bool][]string{
					true: {"held up", "works again", "found the messages"}, false: {"held up", "works again"},
				}[tc.taken > 0]...)
				stop()
			})
		})
	}
}

// TestLookUpIsRepeated while Redis is away, at the common rate; the slots of the lost call stay taken, and nothing
// is reserved with others.
func TestLookUpIsRepeated(t *testing.T) { // B03, B15
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		const outage = 20 * time.Second
		g.loses("a")
		g.found = func(call int) (flow.Reserved, error) {
			switch {
			case time.Since(g.began) > outage:
				return got(3, 10), nil
			case call == 0:
				return flow.Reserved{}, errAmbiguous
			}
			return flow.Reserved{}, errTransient
		}
		stop := g.running(t)
		time.Sleep(outage)
		events := g.happened()
		looks := of(events, "recall a")
		if len(events) != len(looks)+1 || len(looks) < 20 || len(looks) > 60 {
			t.Errorf("%d look-ups in %s: %.200s", len(looks), outage, names(events))
		}
		if n, bytes := g.slots.Free(); n != capacity-4 || bytes != budget-1<<20 {
			t.Errorf("free while in doubt: %d slots, %d bytes", n, bytes)
		}
		time.Sleep(time.Second)
		if n, _ := g.slots.Free(); n != capacity-3 || len(g.out) != 3 {
			t.Errorf("%d messages given, %d slots free", len(g.out), n)
		}
		g.logs.Want(t, "held up", "works again", "found the messages")
		stop()
	})
}

// TestEachLostReplyIsLookedUp, one after the other, each under its own name, and never again once it is answered.
func TestEachLostReplyIsLookedUp(t *testing.T) { // B03
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			if call < 2 {
				return lost(string(rune('a' + call)))
			}
			return flow.Reserved{Sent: time.Now()}, nil
		}
		g.found = func(int) (flow.Reserved, error) { return got(2, 10), nil }
		events := g.run(t, 10*time.Second)
		if s := names(events[:min(6, len(events))]); s != "reserve, recall a, reserve, recall b, reserve, wait" {
			t.Errorf("got %s", s)
		}
		if n := len(of(events, "recall a")) + len(of(events, "recall b")); n != 2 || len(g.out) != 4 {
			t.Errorf("%d look-ups, %d messages", n, len(g.out))
		}
	})
}

// TestRefusedLookUp gives up, and its slots: somebody has to mend something, and other queues go on meanwhile.
func TestRefusedLookUp(t *testing.T) { // B03, B13
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		g.loses("a")
		g.found = func(int) (flow.Reserved, error) { return flow.Reserved{}, errPermanent }
		events := g.run(t, 10*time.Second)
		if s := names(events[:min(3, len(events))]); s != "reserve, recall a, reserve" {
			t.Errorf("got %s", s)
		}
		if n, bytes := g.slots.Free(); n != capacity || bytes != budget {
			t.Errorf("free: %d slots, %d bytes", n, bytes)
		}
		g.logs.Want(t, "held up", "left to their lease", "works again")
	})
}

// TestLostReplyWithoutAName is that of a layout whose messages do not tell their call: the lease recovers them.
func TestLostReplyWithoutAName(t *testing.T) { // B03, Z4
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		g.loses("")
		events := g.run(t, time.Second)
		if s := names(events[:min(3, len(events))]); s != "reserve, reserve, wait" {
			t.Errorf("got %s", s)
		}
		if n, bytes := g.slots.Free(); n != capacity || bytes != budget {
			t.Errorf("free: %d slots, %d bytes", n, bytes)
		}
	})
}

// TestDoubtAtTheEnd: what one short look-up finds is in the buffer when Run returns, so that it is handed back. No
// second one is made of a Redis that has just failed to answer.
func TestDoubtAtTheEnd(t *testing.T) { // B03, B24
	t.Parallel()
	for _, tc := range []struct {
		name  string
		found func(call int) (flow.Reserved, error)
		early bool // the first look-up comes before the end
		want  string
		taken int
		logs  []string
	}{
		{
			"found", func(int) (flow.Reserved, error) { return got(3, 10), nil }, false,
			"reserve, recall a, close", 3, []string{"held up", "works again", "found the messages"},
		},
		{"nothing found", nil, false, "reserve, recall a, close", 0, []string{"held up", "works again"}},
		{
			"no answer", func(int) (flow.Reserved, error) { return flow.Reserved{}, errTransient }, false,
			"reserve, recall a, close", 0, []string{"held up", "left to their lease"},
		},
		{
			"no answer before", func(int) (flow.Reserved, error) { return flow.Reserved{}, errTransient }, true,
			"reserve, recall a, close", 0, []string{"held up", "left to their lease"},
		},
		{
			"refused", func(int) (flow.Reserved, error) { return flow.Reserved{}, errPermanent }, false,
			"reserve, recall a, close", 0, []string{"held up", "left to their lease"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // without a look-up nothing else ends it
				defer cancel()
				g := newRig(nil)
				g.answer = func(int, flow.ReserveRequest) (flow.Reserved, error) {
					if !tc.early {
						cancel()
					}
					return lost("a")
				}
				g.found = func(call int) (flow.Reserved, error) {
					cancel()
					if tc.found == nil {
						return flow.Reserved{}, nil
					}
					return tc.found(call)
				}
				if err := g.Run(ctx); err != nil {
					t.Error(err)
				}
				events := g.happened()
				if s := names(events); s != tc.want {
					t.Errorf("got %s, want %s", s, tc.want)
				}
				if len(events) > 1 && events[1].ctx != nil {
					t.Errorf("looked up on a context that has ended: %v", events[1].ctx)
				}
				if n, bytes := g.slots.Free(); n != capacity-tc.taken || bytes != int64(budget-10*tc.taken) || len(g.out) != tc.taken {
					t.Errorf("%d messages given; free: %d slots, %d bytes", len(g.out), n, bytes)
				}
				g.logs.Want(t, tc.logs...)
			})
		})
	}
}
