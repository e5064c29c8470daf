package modeltest

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

// owner is one process that consumes the queue: a store of its own, and what it believes. Its lease is its own too, as
// pools may differ in theirs.
type owner struct {
	store lua.Store
	lease int64               // seconds, 0 = leases do not run out
	held  []*flow.Reservation // not settled as far as it knows, in the order of reservation
	past  []*flow.Reservation // settled or lost: calls with them are late
	token int                 // notify tokens that a wait took
	lost  *lostCall
}

// lostCall is a reserve whose reply did not come (B03).
type lostCall struct {
	call string
	sent time.Time
	at   int64 // the test's clock then
}

// most past reservations that an owner remembers.
const memory = 100

// settled notes that the owner knows the end of reservations.
func (o *owner) settled(batch []*flow.Reservation) {
	ended := make(map[*flow.Reservation]bool, len(batch))
	for _, r := range batch {
		ended[r] = true
	}
	o.held = slices.DeleteFunc(o.held, func(r *flow.Reservation) bool { return ended[r] })
	for _, r := range batch {
		if !slices.Contains(o.past, r) {
			o.past = append(o.past, r)
		}
	}
	o.past = o.past[max(0, len(o.past)-memory):]
}

// crash is the end of the process: a new one with the same configuration knows nothing.
func (o *owner) crash() { o.held, o.past, o.token, o.lost = nil, nil, 0, nil }

// draw draws reservations of the owner for one call: a run of what it holds, in order, with gaps, from the end, or
// scattered, and between them some that it has settled before or whose lease may be gone. A handle may come twice: the
// same reservation by mistake, or in a zset queue two whose members are the same bytes (Z4).
func (o *owner) draw(t *rapid.T, big bool) []*flow.Reservation {
	n := len(o.held)
	var batch []*flow.Reservation
	if n > 0 {
		size := rapid.IntRange(1, min(n, 8)).Draw(t, "size")
		if big && n > 8 {
			size = min(n, rapid.SampledFrom([]int{size, 40, 60, n / 4, n}).Draw(t, "large size"))
		}
		from := rapid.SampledFrom([]int{0, 0, 0, n / 3, n / 2, n - size}).Draw(t, "from")
		step := rapid.SampledFrom([]int{1, 1, 1, 1, n - 1, 7, 37}).Draw(t, "step")
		gap := rapid.SampledFrom([]int{0, 0, 0, 2, 3, 5}).Draw(t, "one left out of") // 0 = none
		taken := make([]bool, n)
		for i := range size {
			at := (from + i*step) % n
			if taken[at] || gap > 0 && i%gap == gap-1 {
				continue
			}
			taken[at] = true
			batch = append(batch, o.held[at])
		}
	}
	if p := len(o.past); p > 0 && (len(batch) == 0 || rapid.IntRange(0, 2).Draw(t, "with late ones") == 2) {
		for range rapid.IntRange(1, min(p, 4)).Draw(t, "late ones") {
			late := o.past[rapid.IntRange(0, p-1).Draw(t, "late one")]
			batch = slices.Insert(batch, rapid.IntRange(0, len(batch)).Draw(t, "before"), late)
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "with repetitions") == 4 {
		for range rapid.IntRange(1, 3).Draw(t, "repetitions") {
			again := batch[rapid.IntRange(0, len(batch)-1).Draw(t, "repeated")]
			batch = slices.Insert(batch, rapid.IntRange(0, len(batch)).Draw(t, "before"), again)
		}
	}
	return batch
}

// handles are what renewals take.
func handles(batch []*flow.Reservation) []string {
	all := make([]string, len(batch))
	for i, r := range batch {
		all[i] = r.Handle
	}
	return all
}

// handBacks are hand backs as settlements, as the model takes them.
func handBacks(batch []*flow.Reservation) []flow.Settlement {
	all := make([]flow.Settlement, len(batch))
	for i, r := range batch {
		all[i] = flow.Settlement{Reservation: r, Op: flow.HandBack}
	}
	return all
}
