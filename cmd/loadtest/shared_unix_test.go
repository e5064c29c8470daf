//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// otherProcess are the same books as another process has them: the file is mapped again, elsewhere.
func otherProcess(t *testing.T, m *sharedMemory) *books {
	t.Helper()
	fd, err := syscall.Dup(int(m.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	other := &sharedMemory{file: os.NewFile(uintptr(fd), "books")}
	t.Cleanup(func() {
		if err := other.close(); err != nil {
			t.Error(err)
		}
	})
	b, err := newSharedBooks(other)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestProcessesShareTheBooks(t *testing.T) {
	t.Parallel()
	m, err := newSharedMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	mine, err := newSharedBooks(m)
	if err != nil {
		t.Fatal(err)
	}
	a, b := otherProcess(t, m), otherProcess(t, m)

	const messages = 2*leafSize + 5
	last := int64(messages - 1)
	for _, size := range []int64{10, messages} { // the leaves that are in the file when a process looks, and later ones
		if err := mine.open(size); err != nil {
			t.Fatal(err)
		}
		if run := start(t, a, size); run != 0 {
			t.Errorf("message %d, which was never opened, has start %d", size, run)
		}
		mine.published(size-1, stored)
		for i, other := range []*books{a, b} {
			if run := start(t, other, size-1); run != i+1 {
				t.Errorf("start %d of message %d, want %d: all processes count together", run, size-1, i+1)
			}
		}
	}
	b.succeeded(last)
	mine.found(9, inReady)
	want := tally{Published: 2, Acked: 1, LeftReady: 1, Redelivered: 2}
	if diff := cmp.Diff(want, mine.tally()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestBooksThatCannotGrow(t *testing.T) {
	t.Parallel()
	m, err := newSharedMemory()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newSharedBooks(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.open(1); err == nil {
		t.Error("no error")
	}
	if b.size.Load() != 0 || b.entry(0) != nil {
		t.Error("a message has an entry that is not there")
	}
	_ = m.close() // the file is closed already
}
