package flow

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fill puts n messages of each queue in a buffer.
func fill(n int, weights ...int) *Buffer {
	b := NewBuffer(weights)
	for q := range weights {
		b.Put(q, NewLease(q, n).Items)
	}
	return b
}

// TestSpreadProperty holds that turns follow the weights at every moment, not only over a round.
func TestSpreadProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 100), 1, 8).Draw(t, "weights")
		total := 0
		for _, w := range weights {
			total += w
		}
		turns, had := spread(weights), make([]int, len(weights))
		if len(turns) != total {
			t.Fatalf("%d turns, want %d", len(turns), total)
		}
		for i, q := range turns {
			had[q]++
			for q, w := range weights {
				// A queue is never a whole number of turns as large as the number of queues off its due.
				due := float64(i+1) * float64(w) / float64(total)
				if off := float64(had[q]) - due; off > float64(len(weights)) || off < -float64(len(weights)) {
					t.Fatalf("after %d turns of %v queue %d had %d", i+1, weights, q, had[q])
				}
			}
		}
		if diff := cmp.Diff(weights, had); diff != "" {
			t.Fatalf("turns of a round (-want +got):\n%s", diff)
		}
	})
}

func TestSpreadIsEven(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ weights, want []int }{
		{[]int{1}, []int{0}},
		{[]int{1, 1}, []int{0, 1}},
		{[]int{3, 1}, []int{0, 0, 1, 0}},
		{[]int{5, 1, 1}, []int{0, 0, 1, 0, 2, 0, 0}},
	} {
		if diff := cmp.Diff(tc.want, spread(tc.weights)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.weights, diff)
		}
	}
}

// TestBufferTakesByWeight: every queue that has something gets its share, so nobody starves; within a queue the
// order stays.
func TestBufferTakesByWeight(t *testing.T) {
	t.Parallel()
	b, had := fill(100, 5, 3, 1), make([]int, 3)
	for range 90 {
		r, ok := b.Take()
		if !ok {
			t.Fatal("ended")
		}
		if r.Order != had[r.Queue] {
			t.Fatalf("queue %d: message %d out of turn", r.Queue, r.Order)
		}
		had[r.Queue]++
	}
	if diff := cmp.Diff([]int{50, 30, 10}, had); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBufferTakesEverythingInOrder puts and takes at random and misses nothing.
func TestBufferTakesEverythingInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "weights")
		b, waiting := NewBuffer(weights), make([][]*Reservation, len(weights))
		size := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if size > 0 && rapid.Bool().Draw(t, "take") {
				r, ok := b.Take()
				if !ok || r != waiting[r.Queue][0] {
					t.Fatalf("took %v, %t", r, ok)
				}
				waiting[r.Queue] = waiting[r.Queue][1:]
				size--
				continue
			}
			q := rapid.IntRange(0, len(weights)-1).Draw(t, "queue")
			items := NewLease(q, rapid.IntRange(1, 5).Draw(t, "n")).Items
			b.Put(q, items)
			for i := range items {
				waiting[q] = append(waiting[q], &items[i])
			}
			size += len(items)
		}
		var want []*Reservation
		for _, w := range waiting {
			want = append(want, w...)
		}
		rest := b.Rest()
		if len(rest) != len(want) {
			t.Fatalf("%d left, want %d", len(rest), len(want))
		}
		for i := range rest {
			if rest[i] != want[i] {
				t.Fatalf("rest %d is another", i)
			}
		}
		b.Close()
		if r, ok := b.Take(); ok {
			t.Fatalf("after the rest: %v", r)
		}
	})
}

func TestBufferEndsWhenClosedAndEmpty(t *testing.T) {
	t.Parallel()
	b := fill(2, 1, 1)
	b.Close()
	for range 4 {
		if _, ok := b.Take(); !ok {
			t.Fatal("ended before it was empty")
		}
	}
	if r, ok := b.Take(); ok || r != nil {
		t.Errorf("goes on after the end with %v", r)
	}
}

// TestBufferWakesAsManyAsNeeded: each message finds a waiting worker, however many come at once, and Close wakes
// them all. A woken worker that took its message and blocks in a handler must not keep the others asleep.
func TestBufferWakesAsManyAsNeeded(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			b := NewBuffer([]int{1})
			var taken atomic.Int64
			var wg sync.WaitGroup
			hold := make(chan struct{})
			for range 8 {
				wg.Go(func() {
					if _, ok := b.Take(); ok {
						taken.Add(1)
						<-hold
					}
				})
			}
			synctest.Wait()
			b.Put(0, NewLease(0, batch).Items)
			synctest.Wait()
			if n := taken.Load(); n != int64(batch) {
				t.Errorf("%d messages taken of %d", n, batch)
			}
			close(hold)
			b.Close()
			wg.Wait()
		})
	}
}

func TestBufferUnderLoad(t *testing.T) {
	t.Parallel()
	const putters, batches, size, takers = 3, 200, 17, 8
	b := NewBuffer([]int{1, 2, 3})
	var taken atomic.Int64
	var put, take sync.WaitGroup
	for range takers {
		take.Go(func() {
			for {
				if _, ok := b.Take(); !ok {
					return
				}
				taken.Add(1)
			}
		})
	}
	for q := range putters {
		put.Go(func() {
			for range batches {
				b.Put(q, NewLease(q, size).Items)
			}
		})
	}
	put.Wait()
	b.Close()
	take.Wait()
	if n := taken.Load(); n != putters*batches*size {
		t.Errorf("%d taken, want %d", n, putters*batches*size)
	}
}

// One queue's rest is taken; the others keep theirs and their turns.
func TestBufferRestOf(t *testing.T) {
	t.Parallel()
	b := NewBuffer([]int{1, 1})
	b.Put(0, NewLease(0, 3).Items)
	b.Put(1, NewLease(1, 2).Items)
	if r, ok := b.Take(); !ok || r.Queue != 0 && r.Queue != 1 {
		t.Fatal("nothing to take")
	}
	before := b.Len(0)
	rest := b.RestOf(0)
	if len(rest) != before || before < 2 || b.Len(0) != 0 || len(b.RestOf(0)) != 0 {
		t.Errorf("%d of %d taken, %d left", len(rest), before, b.Len(0))
	}
	for i := 1; i < len(rest); i++ {
		if rest[i-1].Order >= rest[i].Order {
			t.Errorf("order %d before %d", rest[i-1].Order, rest[i].Order)
		}
	}
	b.Put(0, NewLease(0, 1).Items)
	b.Close()
	left := map[int]int{}
	for r, ok := b.Take(); ok; r, ok = b.Take() {
		left[r.Queue]++
	}
	if left[0] != 1 || left[1] != 5-1-before {
		t.Errorf("left: %v", left)
	}
}
