package flow

import (
	"strings"
	"testing"
)

func TestReady(t *testing.T) { // Z7
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		edit       Edit
		want       string
	}{
		{"no edit", `{"attempts":4}`, Edit{}, `{"attempts":4}`},
		{"a digit", `{"attempts":4}`, Edit{At: 12, Length: 1, Old: "3"}, `{"attempts":3}`},
		{"a digit more", `{"attempts":10}`, Edit{At: 12, Length: 2, Old: "9"}, `{"attempts":9}`},
		{"in the middle", `{"attempts":10,"x":1}`, Edit{At: 12, Length: 2, Old: "9"}, `{"attempts":9,"x":1}`},
		{"inserted", `{"x":1,"attempts":1}`, Edit{At: 6, Length: 13}, `{"x":1}`},
		{"leading zeros", `{"attempts":8}`, Edit{At: 12, Length: 1, Old: "007"}, `{"attempts":007}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := Reservation{Text: tc.text, Edit: tc.edit}
			if got := r.Ready(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestReservationsKnowTheirPlace checks what the other actors sort, count and log by.
func TestReservationsKnowTheirPlace(t *testing.T) {
	t.Parallel()
	l := NewLease(3, 2)
	NewBook(0, true, 0).Add(l, at(0))
	if l.Queue() != 3 || l.Number() != 1 || len(l.Items) != 2 {
		t.Errorf("lease %d of queue %d with %d reservations", l.Number(), l.Queue(), len(l.Items))
	}
	for i := range l.Items {
		r := &l.Items[i]
		if r.Queue != 3 || r.Order != i || r.Lease() != l || r.State() != Buffered {
			t.Errorf("reservation %d: queue %d, order %d, state %d", i, r.Queue, r.Order, r.State())
		}
	}
	r := &l.Items[1]
	r.Handle, r.Text = "0123456789", "secret body"
	if r.Size() != 10 {
		t.Errorf("size %d, want that of the handle", r.Size())
	}
	if name := r.String(); name != "reservation 1/1" || strings.Contains(name, "secret") { // B48
		t.Errorf("named %q", name)
	}
}

func TestOperationsHaveNames(t *testing.T) {
	t.Parallel()
	for op, want := range map[Op]string{
		Ack: "ack", Release: "release", Return: "return", Requeue: "requeue", DeadLetter: "dead-letter",
		HandBack: "hand back", Leave: "leave", Forget: "forget",
	} {
		if op.String() != want {
			t.Errorf("operation %d is named %q, want %q", op, op, want)
		}
	}
}

// TestResendable holds Z4: what wrote a text that may have been reserved anew is sent once.
func TestResendable(t *testing.T) {
	t.Parallel()
	for op := Ack; op <= Forget; op++ {
		if !Legacy.Resendable(op) {
			t.Errorf("legacy: %s is not sent again, although its handle is unique", op)
		}
		want := op != Return && op != HandBack
		if Zset.Resendable(op) != want {
			t.Errorf("zset: %s is sent again: %t, want %t", op, !want, want)
		}
	}
}

func TestLayoutNames(t *testing.T) {
	t.Parallel()
	for layout, want := range map[Layout]string{Legacy: "legacy", Zset: "zset", 0: "legacy"} {
		if got := layout.String(); got != want {
			t.Errorf("layout %d is named %q, want %q", layout, got, want)
		}
	}
}
