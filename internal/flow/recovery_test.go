package flow

import (
	"testing"
	"time"
)

func TestB21Solo(t *testing.T) {
	t.Parallel()
	s := NewSolo()
	if !s.Take() || s.Take() {
		t.Fatal("want the right once")
	}
	s.Return()
	select {
	case <-s.Freed():
		t.Error("a right that was not used wakes others")
	default:
	}
	s.Take()
	s.Free()
	s.Take()
	s.Free() // nobody waits: it must not block
	select {
	case <-s.Freed():
	default:
		t.Error("nobody is woken")
	}
	if !s.Take() {
		t.Error("the right is not free")
	}
}

// Finish frees the right of the message that held it, and of no other.
func TestB21FinishFreesTheSolo(t *testing.T) {
	t.Parallel()
	s := NewSolo()
	s.Take()
	book := NewBook(90*time.Second, true, 0)
	l := NewLease(0, 3)
	l.Items[1].Recovery = &Recovery{Workers: 1}
	l.Items[2].Recovery = &Recovery{Workers: 2, Solo: s}
	book.Add(l, time.Now())
	book.Finish([]Settlement{{Reservation: &l.Items[0]}, {Reservation: &l.Items[1]}})
	if s.Take() {
		t.Fatal("freed by others")
	}
	book.Finish([]Settlement{{Reservation: &l.Items[2]}})
	if !s.Take() {
		t.Error("not freed")
	}
	if a, b := l.Items[0].WorkersLost(), l.Items[2].WorkersLost(); a != 0 || b != 2 {
		t.Errorf("workers lost: %d and %d", a, b)
	}
}
