package modeltest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
)

// ledger counts messages by their origin. It knows no rules, so a mistake in the model cannot hide a message that is
// lost or doubled (R1).
type ledger struct {
	in  map[string]int // published
	out map[string]int // acked, or removed by a consumer outside the pool
}

func newLedger() *ledger { return &ledger{in: map[string]int{}, out: map[string]int{}} }

func (l *ledger) published(bodies ...string) {
	for _, body := range bodies {
		l.in[origin(body)]++
	}
}

func (l *ledger) acked(text string) { l.out[origin(text)]++ }

// check holds that every message published is in exactly one place.
func (l *ledger) check(s state) error {
	have := map[string]int{}
	for text, n := range l.out {
		have[text] += n
	}
	for _, texts := range [][]string{s.Ready, s.Processing, s.Dead} {
		for _, text := range texts {
			have[origin(text)]++
		}
	}
	for _, m := range slices.Concat(s.Reserved, s.Delayed) {
		have[origin(m.Text)]++
	}
	if maps.Equal(l.in, have) { // cmp is slow, and this is done after every call
		return nil
	}
	return fmt.Errorf("messages by origin, -published +in a place or acked (R1):\n%s", cmp.Diff(l.in, have))
}

// tally counts texts.
func tally(texts []string) map[string]int {
	counts := make(map[string]int, len(texts))
	for _, text := range texts {
		counts[text]++
	}
	return counts
}
