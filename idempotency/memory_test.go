package idempotency_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/idempotency"
)

// knows reports whether a memory has an id.
func knows(t *testing.T, m *idempotency.Memory, id string) bool {
	t.Helper()
	seen, err := m.Seen(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func remember(t *testing.T, m *idempotency.Memory, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := m.Remember(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMemoryForgetsTheOldest(t *testing.T) {
	t.Parallel()
	m := idempotency.NewMemory(idempotency.MemoryConfig{Most: 3})
	remember(t, m, "a", "b", "c", "a", "b") // the second a and b are no news
	if err := m.Forget(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	remember(t, m, "d", "e")
	for id, want := range map[string]bool{"a": false, "b": false, "c": true, "d": true, "e": true} {
		if knows(t, m, id) != want {
			t.Errorf("%s is remembered: %t", id, !want)
		}
	}
	if err := m.Forget(t.Context(), "nobody"); err != nil {
		t.Error(err)
	}
}

func TestMemoryTTL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := idempotency.NewMemory(idempotency.MemoryConfig{TTL: time.Minute})
		remember(t, m, "a")
		time.Sleep(40 * time.Second)
		remember(t, m, "a", "b")
		time.Sleep(20*time.Second - 1)
		if !knows(t, m, "a") {
			t.Error("a is forgotten before its time")
		}
		time.Sleep(time.Nanosecond)
		if knows(t, m, "a") || !knows(t, m, "b") {
			t.Error("a is remembered beyond its time, or b is not")
		}
		remember(t, m, "a")
		if !knows(t, m, "a") {
			t.Error("a is not remembered anew")
		}
	})
}

// Long ids stay apart, and cost no more than short ones.
func TestMemoryOfLongIDs(t *testing.T) {
	t.Parallel()
	m := idempotency.NewMemory(idempotency.MemoryConfig{})
	long := strings.Repeat("x", 1<<20)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 50 {
		remember(t, m, fmt.Sprint(long, i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 20<<20 {
		t.Errorf("50 ids of 1 MiB hold %d bytes", grown)
	}
	if !knows(t, m, long+"7") || knows(t, m, long) || knows(t, m, long+"50") {
		t.Error("long ids are mixed up")
	}
}

// An id is a piece of a larger text, which a Memory must not keep alive.
func TestMemoryKeepsTheIDAlone(t *testing.T) {
	m := idempotency.NewMemory(idempotency.MemoryConfig{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 50 {
		text := strings.Repeat("x", 1<<20) + fmt.Sprintf("%09d", i)
		remember(t, m, text[1<<20:])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 20<<20 {
		t.Errorf("50 ids hold %d bytes", grown)
	}
	if !knows(t, m, "000000007") {
		t.Error("an id is forgotten")
	}
}

func TestMemoryFromManyGoroutines(t *testing.T) {
	t.Parallel()
	m := idempotency.NewMemory(idempotency.MemoryConfig{Most: 50, TTL: time.Minute})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				id := fmt.Sprint((g * i) % 100)
				_ = m.Remember(t.Context(), id)
				_, _ = m.Seen(t.Context(), id)
				if i%7 == 0 {
					_ = m.Forget(t.Context(), id)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for i := range 100 {
		if knows(t, m, fmt.Sprint(i)) {
			n++
		}
	}
	if n > 50 {
		t.Errorf("%d ids, more than the bound", n)
	}
	remember(t, m, "after")
	if !knows(t, m, "after") {
		t.Error("it takes no more ids")
	}
}
