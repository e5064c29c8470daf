package scheduler

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
)

// orphaned is an audit that found these values.
func orphaned(values ...string) flow.Audit {
	n := int64(len(values))
	return flow.Audit{InFlight: n + 5, Leases: 5, Orphans: n, Values: values}
}

// TestAuditsSeldom: an audit reads a whole list, so it is made with the first tick, and then once per lease,
// or once in half a minute where leases are shorter.
func TestAuditsSeldom(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 2 * time.Second: 30 * time.Second, retryAfter: retryAfter} {
		synctest.Test(t, func(t *testing.T) {
			g := newRig()
			g.queue.Lease = lease
			at := times(of(g.run(t, 5*time.Minute), "audit"))
			if at[0] != tick || len(at) < 3 {
				t.Fatalf("audits at %v", at)
			}
			for i := 1; i < len(at); i++ {
				if d := at[i] - at[i-1]; d < want || d > want+tick {
					t.Errorf("lease %s: %s between two audits, want %s", lease, d, want)
				}
			}
		})
	}
}

// TestOrphansAreReportedOncePerChange, with how long the oldest has been seen, and none are touched (L7, B02).
func TestOrphansAreReportedOncePerChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		found := []flow.Audit{
			{InFlight: 5, Leases: 5},
			orphaned("secret-a", "secret-b"),
			orphaned("secret-a", "secret-b"), // no change
			orphaned("secret-b", "secret-a", "secret-c"),
			{InFlight: 30000, Leases: 29993, Orphans: -1}, // too much to read
			{InFlight: 30000, Leases: 29993, Orphans: -1},
			{InFlight: 5, Leases: 6, Dangling: 1}, // a deadline without a value is no orphan
			{InFlight: 5, Leases: 5},
		}
		counted := []int64{0, 2, 2, 3, 7, 7, 0, 0}
		audits := 0
		g.audit = func() (flow.Audit, error) {
			audits++
			return found[audits-1], nil
		}
		stop := g.running(t)
		for i := 0; i < len(found); time.Sleep(tick) {
			calls := g.made()
			if len(of(calls, "adopt")) != 0 {
				t.Errorf("adopted: %v", calls)
			}
			if len(of(calls, "audit")) == 0 {
				continue
			}
			if n := g.counters.Orphans.Load(); n != counted[i] {
				t.Errorf("after audit %d: %d orphans counted, want %d", i, n, counted[i])
			}
			i++
		}
		stop()
		g.logs.want(t,
			"orphans=2 oldest_seen_for=0s adopted=false", "orphans=3 oldest_seen_for=3m0s adopted=false", "orphans=7", "no orphans",
		)
		for _, line := range g.logs.Lines() {
			if strings.Contains(line, "secret") { // B48
				t.Errorf("a body is logged: %s", line)
			}
		}
	})
}

// TestOrphansAreAdoptedAfterALease, on request, when they were seen for that long without a break; what the
// script found still orphaned then is counted (L7).
func TestOrphansAreAdoptedAfterALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.queue.Adopt = true
		found := [][]string{
			{"a", "b"}, // first seen
			{"a", "c"}, // b was settled meanwhile
			{"a", "b", "c"},
			{"b"},
			{},
		}
		audits := 0
		g.audit = func() (flow.Audit, error) {
			audits++
			return orphaned(found[min(audits, len(found))-1]...), nil
		}
		g.adopt = func(values []string) (int, error) { return len(values) - 1, nil } // one was settled just now
		stop := g.running(t)
		time.Sleep(10 * retryAfter)
		calls := g.made()
		stop()
		var got [][]string
		for _, c := range of(calls, "adopt") {
			got = append(got, c.values)
		}
		want := [][]string{{"a"}, {"a", "c"}, {"b"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("adopted (-want +got):\n%s", diff)
		}
		if len(got) == 0 {
			return
		}
		first := of(calls, "adopt")[0].at - of(calls, "audit")[0].at
		if first < retryAfter || first > retryAfter+tick {
			t.Errorf("adopted %s after it was first seen", first)
		}
		if n := g.counters.Adopted.Load(); n != 1 {
			t.Errorf("%d adopted are counted, want the one the script found", n)
		}
		g.logs.want(t, "orphans=2", "orphans=3 oldest_seen_for=3m0s adopted=true", "adopted=1", "orphans=1", "no orphans")
	})
}

// TestNothingIsAdoptedWithoutALease: there is none to give.
func TestNothingIsAdoptedWithoutALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.queue.Adopt, g.queue.Lease = true, 0
		g.audit = func() (flow.Audit, error) { return orphaned("a"), nil }
		if calls := of(g.run(t, time.Hour), "adopt"); len(calls) != 0 {
			t.Errorf("adopted: %v", calls)
		}
	})
}

// TestAuditFaults are logged once, and what was known of orphans survives them.
func TestAuditFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig()
		g.queue.Adopt = true
		audits, adopts := 0, 0
		g.audit = func() (flow.Audit, error) {
			if audits++; audits == 2 || audits == 3 || audits == 6 {
				return flow.Audit{}, errPermanent
			}
			return orphaned("a"), nil
		}
		g.adopt = func([]string) (int, error) {
			adopts++
			return 0, errTransient
		}
		calls := g.run(t, 5*retryAfter+10*tick)
		if n := g.counters.Orphans.Load(); n != 1 || g.counters.Adopted.Load() != 0 {
			t.Errorf("%d orphans and %d adopted are counted", n, g.counters.Adopted.Load())
		}
		if len(of(calls, "audit")) != 6 || adopts != 2 {
			t.Errorf("%d audits, %d adoptions", len(of(calls, "audit")), adopts)
		}
		g.logs.want(t, "orphans=1", "audit failed", "orphans not adopted", "orphans not adopted", "audit failed")
	})
}
