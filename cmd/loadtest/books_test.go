package main

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// history is what happened to one message.
type history struct {
	marks             []mark // by publishers, then by the final read
	starts, successes int
}

func start(t *testing.T, b *books, seq int64) (run int) {
	t.Helper()
	run, err := b.started(seq)
	if err != nil {
		t.Error(err)
	}
	return run
}

func TestTally(t *testing.T) {
	t.Parallel()
	acked := history{[]mark{stored}, 1, 1}
	tests := map[string]struct {
		messages []history
		want     tally
		balanced bool
	}{
		"nothing":     {nil, tally{}, true},
		"all acked":   {[]history{acked, acked}, tally{Published: 2, Acked: 2}, true},
		"opened only": {[]history{acked, {}}, tally{Published: 1, Acked: 1}, true},
		"lost, never started": {
			[]history{acked, {[]mark{stored}, 0, 0}, acked},
			tally{Published: 3, Acked: 2, Lost: 1, LostSeqs: []int64{1}}, false,
		},
		"lost, started and failed": {
			[]history{{[]mark{stored}, 2, 0}},
			tally{Published: 1, Lost: 1, Redelivered: 1, LostSeqs: []int64{0}}, false,
		},
		"every place": {
			[]history{
				{[]mark{stored, inReady}, 0, 0}, {[]mark{stored, inFlight}, 1, 0}, {[]mark{stored, inDelayed}, 1, 0},
				{[]mark{stored, inDeadLetters}, 3, 0},
			},
			tally{Published: 4, LeftReady: 1, LeftInFlight: 1, LeftDelayed: 1, DeadLettered: 1, Redelivered: 2}, true,
		},
		"succeeded, not acked": {
			[]history{{[]mark{stored, inFlight}, 1, 1}}, tally{Published: 1, LeftInFlight: 1}, true,
		},
		"succeeded twice": {
			[]history{{[]mark{stored}, 4, 2}}, tally{
				Published: 1, Acked: 1, Redelivered: 3, Duplicated: 1, Evidence: evidence{Unexplained: 1},
			}, true,
		},
		"reply lost, not stored":        {[]history{{[]mark{doubtful}, 0, 0}}, tally{}, true},
		"reply lost, stored and acked":  {[]history{{[]mark{doubtful}, 1, 1}}, tally{Published: 1, Acked: 1}, true},
		"reply lost, stored and left":   {[]history{{[]mark{doubtful, inReady}, 0, 0}}, tally{Published: 1, LeftReady: 1}, true},
		"reply lost, started, now gone": {[]history{{[]mark{doubtful}, 1, 0}}, tally{Published: 1, Lost: 1, LostSeqs: []int64{0}}, false},
		"denied and yet there": {
			[]history{{[]mark{inReady}, 0, 0}}, tally{Published: 1, LeftReady: 1, Denied: 1}, false,
		},
		"in two places": {
			[]history{{[]mark{stored, inReady, inFlight}, 0, 0}}, tally{Published: 1, LeftInFlight: 1, Forked: 1}, false,
		},
		"twice in one place": {
			[]history{{[]mark{stored, inDelayed, inDelayed}, 0, 0}}, tally{Published: 1, LeftDelayed: 1, Forked: 1}, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBooks()
			if err := b.open(int64(len(tt.messages))); err != nil {
				t.Fatal(err)
			}
			for seq, h := range tt.messages {
				for _, m := range h.marks {
					if m&anywhere != 0 {
						b.found(int64(seq), m)
					} else {
						b.published(int64(seq), m)
					}
				}
				for range h.starts {
					start(t, b, int64(seq))
				}
				for range h.successes {
					b.succeeded(int64(seq))
				}
			}
			got := b.tally()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got.balanced() != tt.balanced {
				t.Errorf("balanced = %v", got.balanced())
			}
		})
	}
}

func TestStrangersUnbalanceTheBooks(t *testing.T) {
	t.Parallel()
	b := newBooks()
	if err := b.open(1); err != nil {
		t.Fatal(err)
	}
	b.published(0, stored)
	start(t, b, 0)
	b.succeeded(0)
	b.found(-1, inDeadLetters)
	b.found(1, inReady)
	if got := b.tally(); got.Strangers != 2 || got.balanced() {
		t.Errorf("%+v", got)
	}
	if n := start(t, b, 1); n != 0 {
		t.Errorf("a message that was never opened has start %d", n)
	}
}

// The books of several pages are written by publishers and handlers at once, while they grow.
func TestBooksGrowUnderTheirWriters(t *testing.T) {
	t.Parallel()
	const writers, each = 4, leafSize / 2
	b := newBooks()
	var wg sync.WaitGroup
	for w := range int64(writers) {
		wg.Go(func() {
			for i := range int64(each) {
				seq := i*writers + w
				if err := b.open(seq + 1); err != nil {
					t.Error(err)
					return
				}
				b.published(seq, stored)
				if n := start(t, b, seq); n != 1 {
					t.Errorf("start %d of message %d", n, seq)
				}
				b.succeeded(seq)
			}
		})
	}
	wg.Wait()
	want := tally{Published: writers * each, Acked: writers * each}
	if diff := cmp.Diff(want, b.tally()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := b.stored.Load(); n != writers*each {
		t.Errorf("stored %d", n)
	}
}
