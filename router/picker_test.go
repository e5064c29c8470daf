package router

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/babelpool/babelpool/internal/flow"
)

// full makes queues whose channels hold n reservations each, closed behind them.
func full(n int, weights ...int) []Queue {
	var queues []Queue
	for i, w := range weights {
		in := make(chan *flow.Reservation, n)
		for range n {
			in <- &flow.NewLease(i, 1).Items[0]
		}
		close(in)
		queues = append(queues, Queue{Weight: w, In: in})
	}
	return queues
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

// TestPickerTakesByWeight lets workers start at different turns, and then every queue that has something gets
// its share: nobody starves.
func TestPickerTakesByWeight(t *testing.T) {
	t.Parallel()
	for worker := range 10 {
		p, had := newPicker(full(100, 5, 3, 1), worker), make([]int, 3)
		for range 90 {
			r, ok := p.next()
			if !ok {
				t.Fatal("ended")
			}
			had[r.Queue]++
		}
		if diff := cmp.Diff([]int{50, 30, 10}, had); diff != "" {
			t.Errorf("worker %d (-want +got):\n%s", worker, diff)
		}
	}
	first := map[int]bool{}
	for worker := range 9 {
		r, _ := newPicker(full(1, 5, 3, 1), worker).next()
		first[r.Queue] = true
	}
	if len(first) != 3 {
		t.Errorf("nine idle workers look at queues %v first, want each of the three", first)
	}
}

// TestPickerEnds empties every channel, whichever ends first, and only then says so.
func TestPickerEnds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ lengths []int }{{[]int{3}}, {[]int{0}}, {[]int{0, 4, 1}}, {[]int{9, 0, 0}}, {[]int{0, 0}}} {
		var queues []Queue
		want := 0
		for i, n := range tc.lengths {
			q := full(n, 1)[0]
			q.Weight = i + 1
			queues = append(queues, q)
			want += n
		}
		p := newPicker(queues, 1)
		for range want {
			if _, ok := p.next(); !ok {
				t.Fatalf("%v: ended before it was empty", tc.lengths)
			}
		}
		for range 2 {
			if r, ok := p.next(); ok || r != nil {
				t.Fatalf("%v: goes on after the end with %v", tc.lengths, r)
			}
		}
	}
}

// TestPickerWaits blocks on all channels at once, and goes on with whichever has something, also after some
// have ended.
func TestPickerWaits(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			var queues []Queue
			var ins []chan *flow.Reservation
			for i := range n {
				in := make(chan *flow.Reservation)
				ins = append(ins, in)
				queues = append(queues, Queue{Weight: i + 1, In: in})
			}
			p, got := newPicker(queues, 0), make(chan *flow.Reservation)
			go func() {
				defer close(got)
				for {
					r, ok := p.next()
					if !ok {
						return
					}
					got <- r
				}
			}()
			for i := range n {
				for q := i; q < n; q++ {
					synctest.Wait()
					r := &flow.NewLease(q, 1).Items[0]
					ins[q] <- r
					if same := <-got; same != r {
						t.Fatalf("queue %d of %d: another reservation", q, n)
					}
				}
				close(ins[i])
			}
			if _, open := <-got; open {
				t.Fatal("goes on after all have ended")
			}
		})
	}
}
