package lua

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

func (q *queue) audit(t testing.TB) flow.Audit {
	t.Helper()
	audit, err := q.Audit(t.Context())
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	return audit
}

func (q *queue) adopt(t testing.TB, values ...string) int {
	t.Helper()
	n, err := q.Adopt(t.Context(), values)
	if err != nil {
		t.Fatalf("adopt: %v", err)
	}
	return n
}

// Values and deadlines are compared as multisets: of three equal values with two deadlines one is an orphan.
// The audit writes nothing.
func TestLegacyAudit(t *testing.T) { // L7, B02
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		if diff := cmp.Diff(flow.Audit{}, q.audit(t), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("an empty queue (-want +got):\n%s", diff)
		}
		q.publish(t, "a", "a", "b", "c")
		held := q.take(t, 4)
		q.fill(t, q.keys.Processing, "a", "x", "b", "x", "")
		token := strings.Repeat("0", 32) + ":"
		q.score(t, q.keys.Deadlines, entry{token + "gone", start}, entry{token + "gone too", never}, entry{"malformed", start})
		q.do(t, "LREM", q.keys.Processing, 1, "c") // its deadline dangles
		want := flow.Audit{
			InFlight: 8, Leases: 7, Orphans: 5, Dangling: 4, Values: []string{"a", "x", "b", "x", ""},
		}
		q.untouched(t, "an audit", func() {
			if diff := cmp.Diff(want, q.audit(t)); diff != "" {
				t.Errorf("audit differs (-want +got):\n%s", diff)
			}
		})
		q.settle(t, acks(held[:2]...)...) // leaves the deadline of no "a", and one "a"
		if got := q.audit(t); got.Orphans != 5 || got.InFlight != 6 {
			t.Errorf("after two acks: %+v", got)
		}
	})
}

// An audit names at most so many orphans, in list order, and counts all.
func TestLegacyAuditNamesSomeOrphans(t *testing.T) { // L7
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q.fill(t, q.keys.Processing, bodies(0, 2300)...)
		got := q.audit(t)
		if got.Orphans != 2300 || !slices.Equal(got.Values, bodies(0, auditMost)) {
			t.Errorf("%d orphans, %d named", got.Orphans, len(got.Values))
		}
	})
}

// A key too long to read in one script is counted and left alone.
func TestLegacyAuditOfTooLongLists(t *testing.T) { // L7, B38
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q.fill(t, q.keys.Processing, bodies(0, auditLongest)...)
		if got := q.audit(t); got.Orphans != auditLongest {
			t.Errorf("at the limit: %d orphans, want %d", got.Orphans, auditLongest)
		}
		q.fill(t, q.keys.Processing, "one more")
		want := flow.Audit{InFlight: auditLongest + 1, Orphans: -1}
		if diff := cmp.Diff(want, q.audit(t), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("beyond the limit (-want +got):\n%s", diff)
		}
		if n := q.adopt(t, body(1)); n != 0 {
			t.Errorf("%d adopted from a list too long to check", n)
		}
		if s := q.state(t); s.Leases != nil {
			t.Errorf("%d leases appeared", len(s.Leases))
		}
	})
}

// Adoption gives orphans, and nothing but orphans, a deadline; then the sweep returns them once.
func TestLegacyAdopt(t *testing.T) { // L7
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q.publish(t, "live", "twin")
		q.take(t, 2)
		q.fill(t, q.keys.Processing, "orphan", "twin", "orphan", "unseen")
		q.pass(20)
		// Seen as orphans before; by now "live" has its deadline and "gone" has left.
		if n := q.adopt(t, "live", "twin", "twin", "orphan", "gone"); n != 2 {
			t.Errorf("%d adopted, want 2", n)
		}
		want := q.held(start+lease, "live", "twin")
		want.Processing = append(want.Processing, "orphan", "twin", "orphan", "unseen")
		want.Leases = append(want.Leases, entries(start+20+lease, "twin", "orphan")...)
		q.expect(t, want)
		if n := q.adopt(t, "orphan", "orphan", "twin"); n != 1 {
			t.Errorf("%d adopted, want the second copy", n)
		}
		q.pass(lease)
		if moved := q.sweep(t, 1000); moved != 5 {
			t.Errorf("%d moved, want 5", moved)
		}
		s := q.state(t)
		if !slices.Equal(s.Processing, []string{"unseen"}) || !sameSet(s.Ready, []string{"live", "twin", "twin", "orphan", "orphan"}) {
			t.Errorf("ready %q, processing %q", s.Ready, s.Processing)
		}
	})
}

// Adopters that have seen the same orphans adopt each once between them.
func TestLegacyAdoptersAdoptOnce(t *testing.T) { // L7, B02
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		var orphans []string
		for i := range 50 {
			orphans = append(orphans, fmt.Sprint("orphan ", i%40)) // ten of them twice
		}
		q.fill(t, q.keys.Processing, orphans...)
		var wg sync.WaitGroup
		counts := make([]int, 4)
		for i := range counts {
			wg.Go(func() {
				n, err := q.Adopt(t.Context(), orphans)
				if err != nil {
					t.Errorf("adopt: %v", err)
				}
				counts[i] = n
			})
		}
		wg.Wait()
		sum := 0
		for _, n := range counts {
			sum += n
		}
		if got := q.audit(t); sum != 50 || got.Orphans != 0 || got.Leases != 50 {
			t.Errorf("%v adopted; audit %+v", counts, got)
		}
	})
}

func TestLegacyAdoptNeedsALease(t *testing.T) { // L5, L7
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		endless := q.with(t, func(o *Options) { o.RetryAfter = 0 })
		if _, err := endless.Adopt(t.Context(), []string{"a"}); !errors.Is(err, flow.ErrPermanent) {
			t.Errorf("%v, want ErrPermanent", err)
		}
	})
}

// Members that never expire are what no sweep brings back in this layout; there is nothing to adopt.
func TestZsetAudit(t *testing.T) {
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		endless := q.with(t, func(o *Options) { o.RetryAfter = 0 })
		q.publish(t, bodies(0, 5)...)
		q.take(t, 2)
		endless.take(t, 3)
		q.untouched(t, "an audit", func() {
			want := flow.Audit{InFlight: 5, Leases: 5, Endless: 3}
			if diff := cmp.Diff(want, q.audit(t)); diff != "" {
				t.Errorf("audit differs (-want +got):\n%s", diff)
			}
			if n := q.adopt(t, "a"); n != 0 {
				t.Errorf("%d adopted", n)
			}
		})
	})
}

func TestDepth(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 9)...)
		held := q.take(t, 5)
		q.settle(t, settlement(held[0], flow.DeadLetter, "dead"))
		want := flow.Depth{Ready: 4, InFlight: 4, DeadLetters: 1}
		if q.layout == flow.Zset {
			q.settle(t, flow.Settlement{Reservation: held[1], Op: flow.Release, Delay: 9})
			want.InFlight, want.Delayed = 3, 1
		}
		got, err := q.Depth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want.Oldest = got.Oldest // below
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("depth differs (-want +got):\n%s", diff)
		}
	})
}

// TestDepthTellsTheAgeOfTheHead: of what is next, framed or not, and of nothing that does not tell.
func TestDepthTellsTheAgeOfTheHead(t *testing.T) {
	t.Parallel()
	const dated = `{"job":"urn:a","trace_id":"t","data":{},"meta":{"id":"1","queue":"q","lang":"go","schema_version":1,"created_at":1749132727000},"attempts":0}`
	for name, tc := range map[string]struct {
		ready []string
		want  int64
	}{
		"empty":   {nil, 0},
		"dated":   {[]string{dated, "poison"}, 1749132727000},
		"framed":  {[]string{envelope.EncodeFrame(dated, map[string]string{"a": "b"})}, 1749132727000},
		"poison":  {[]string{"poison", dated}, 0},
		"undated": {[]string{strings.Replace(dated, `,"created_at":1749132727000`, "", 1)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayout(t, func(t *testing.T, q *queue) {
				for _, value := range tc.ready {
					q.do(t, "RPUSH", q.keys.Ready, value)
				}
				got, err := q.Depth(t.Context())
				if want := (flow.Depth{Ready: int64(len(tc.ready)), Oldest: tc.want}); err != nil || got != want {
					t.Errorf("depth %+v, want %+v: %v", got, want, err)
				}
			})
		})
	}
}
