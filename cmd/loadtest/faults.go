package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/babelpool/babelpool/internal/chaos"
)

// faultReport is what the report of a run with faults says besides; without faults it is not there.
type faultReport struct {
	Seed   *uint64          `json:"seed,omitempty"`
	Faults map[string]int64 `json:"faults,omitempty"` // by kind
	Stuck  *int64           `json:"stuck,omitempty"`  // left in any place but the dead letters
	// Stolen and Repeated are messages that a settlement touched which should not have; see evidence.
	Stolen            *int64   `json:"stolen,omitempty"`
	Repeated          *int64   `json:"repeated,omitempty"`
	DuplicatesAllowed *int64   `json:"duplicates_allowed,omitempty"`
	LongestRecoveryMS *float64 `json:"longest_recovery_ms,omitempty"` // in which nothing was settled, the fault included
	DrainMS           *float64 `json:"drain_ms,omitempty"`            // from the end of the faults to the last settlement

	problems []string
}

// addFaults adds that part, and its verdict.
func (r *report) addFaults(t *trial) {
	if t.cfg.chaos == nil {
		return
	}
	sums, c := &r.tally, &t.consumption
	seed, allowed := t.cfg.chaos.seed, t.duplicatesAllowed(sums)
	stuck := sums.LeftReady + sums.LeftInFlight + sums.LeftDelayed
	gap := rounded(c.longestGap.Seconds()*1000, 0)
	drain := rounded(max(0, c.to-t.publishEnd).Seconds()*1000, 0)
	r.faultReport = faultReport{
		Seed: &seed, Faults: map[string]int64{}, Stuck: &stuck, Stolen: &sums.Evidence.Stolen, Repeated: &sums.Evidence.Repeated,
		DuplicatesAllowed: &allowed, LongestRecoveryMS: &gap, DrainMS: &drain,
	}
	problem := func(format string, args ...any) { r.problems = append(r.problems, fmt.Sprintf(format, args...)) }
	for _, kind := range chaos.Kinds() {
		n := t.books.faults.Of(kind)
		r.Faults[kind.String()] = n
		if n == 0 {
			problem("no fault of kind %s happened", kind)
		}
	}
	if stuck > 0 {
		problem("%s stuck", count(stuck))
	}
	if sums.Duplicated > allowed {
		problem("%s duplicates, and the faults explain %s", count(sums.Duplicated), count(allowed))
	}
	r.Reconciled = r.Reconciled && len(r.problems) == 0
}

// duplicatesAllowed is how many duplicates the faults explain at most. A success is repeated when its settlement did
// not take place, and until then its message is held by a consumer. So:
//
//   - A consumer that is killed leaves at most what it holds, its prefetch.
//   - A consumer that renews no leases, or has a wrong clock, may lose a lease at any time. Duplicates of messages that
//     such a consumer ran are all explained.
//   - A fault that stalls everybody makes at most all that the other consumers hold come back.
func (t *trial) duplicatesAllowed(sums *tally) int64 {
	held := int64(t.cfg.prefetch)
	soundPosts := int64((t.cfg.processes + chaosProcesses - 1) / chaosProcesses) // see newCrew
	allowed := sums.Duplicated - sums.Evidence.Unexplained
	for _, kind := range chaos.Kinds() {
		n := t.books.faults.Of(kind)
		switch {
		case kind == chaos.ConsumerKill:
			allowed += n * held
		case kind.Stalls():
			allowed += n * held * soundPosts
		}
	}
	return allowed
}

// writeFaults prints that part for people.
func (r *report) writeFaults(w io.Writer) {
	if r.Seed == nil {
		return
	}
	say(w, "\n  %-16s %13s\n", "fault", "times")
	for _, kind := range chaos.Kinds() {
		say(w, "  %-16s %13s\n", strings.ReplaceAll(kind.String(), "_", " "), count(r.Faults[kind.String()]))
	}
	ms := func(v float64) string { return (time.Duration(v) * time.Millisecond).String() }
	say(w, "\n  %-16s %13s   in which nothing was settled, the fault included\n", "longest recovery", ms(*r.LongestRecoveryMS))
	say(w, "  %-16s %13s   from the end of the faults to the last settlement\n", "drained within", ms(*r.DrainMS))
	say(w, "  %-16s %13s   duplicates that the faults explain\n", "allowed", count(*r.DuplicatesAllowed))
	say(w, "  -seed %d repeats the faults and the handlers' decisions\n", *r.Seed)
}
