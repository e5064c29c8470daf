package lua

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/flow"
)

// name is that of the call which made a reservation.
func name(r *flow.Reservation) string { return r.Handle[:2*tokenBytes] }

// recall looks a call up that was sent so many seconds ago, checks that looking changed nothing, and returns what
// it found.
func (q *queue) recall(t testing.TB, call string, ago int) []*flow.Reservation {
	t.Helper()
	sent := time.Now().Add(time.Duration(-ago) * time.Second)
	var res flow.Reserved
	q.untouched(t, "a look-up", func() {
		var err error
		if res, err = q.Recall(t.Context(), call, sent); err != nil {
			t.Fatalf("recall: %v", err)
		}
	})
	if q.layout == flow.Legacy && !res.Sent.Equal(sent) {
		t.Errorf("the lease would run from %s, the call was sent at %s", res.Sent, sent)
	}
	return items(res)
}

// What a call took is found by its name, in order and ready to be settled, whatever else is in flight; only what is
// still leased counts.
func TestRecall(t *testing.T) { // B03, L2
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 40)...)
		first := q.take(t, 10)
		q.pass(1)
		second, third := q.take(t, 10), q.take(t, 1)
		q.take(t, 9)
		for i, call := range [][]*flow.Reservation{first, second, third} {
			found := q.recall(t, name(call[0]), 1)
			if diff := cmp.Diff(handles(call), handles(found)); diff != "" {
				t.Errorf("call %d (-want +got):\n%s", i, diff)
			}
			if diff := cmp.Diff(texts(call), texts(found)); diff != "" {
				t.Errorf("texts of call %d (-want +got):\n%s", i, diff)
			}
		}
		for _, never := range []string{newToken(), strings.Repeat("0", 24), strings.Repeat("f", 24)} {
			if found := q.recall(t, never, 1); found != nil {
				t.Errorf("a call that took nothing: %d found", len(found))
			}
		}

		q.settle(t, acks(first[0], first[4], first[9])...)
		want := handles(slices.Concat(first[1:4], first[5:9]))
		if diff := cmp.Diff(want, handles(q.recall(t, name(first[0]), 1))); diff != "" {
			t.Errorf("after three of them were acked (-want +got):\n%s", diff)
		}
		found := q.recall(t, name(second[0]), 1)
		if results := q.settle(t, acks(found...)...); !cmp.Equal(results, all(10, flow.Done)) {
			t.Errorf("acks of what was found: %v", results)
		}
		if found := q.recall(t, name(second[0]), 1); found != nil {
			t.Errorf("all acked, and %d found", len(found))
		}
	})
}

// A lease that ran out is found until it is swept: until then it can be renewed, and nobody else has the message.
func TestRecallAfterTheLease(t *testing.T) { // B03, B12, L3
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q.publish(t, bodies(0, 5)...)
		held := q.take(t, 5)
		q.pass(10 * lease)
		if found := q.recall(t, name(held[0]), 10*lease); len(found) != 5 {
			t.Errorf("%d found before the sweep, want 5", len(found))
		}
		q.sweep(t, 2)
		if diff := cmp.Diff(handles(held[2:]), handles(q.recall(t, name(held[0]), 10*lease))); diff != "" {
			t.Errorf("after a sweep of two (-want +got):\n%s", diff)
		}
		q.sweep(t, 1000)
		if found := q.recall(t, name(held[0]), 10*lease); found != nil {
			t.Errorf("%d found after the sweep", len(found))
		}
	})
}

// Without an end to leases all have one score, and nothing but a look-up would bring a lost call's messages back.
func TestRecallOfEndlessLeases(t *testing.T) { // B03, L5
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		endless := q.with(t, func(o *Options) { o.RetryAfter = 0 })
		q.publish(t, bodies(0, 30)...)
		q.take(t, 5)
		var calls [][]*flow.Reservation
		for range 5 {
			calls = append(calls, endless.take(t, 5))
		}
		q.publish(t, bodies(30, 35)...)
		q.take(t, 5) // younger, with a lower score
		q.pass(1 << 30)
		for i, call := range calls {
			if diff := cmp.Diff(handles(call), handles(endless.recall(t, name(call[0]), 1<<30))); diff != "" {
				t.Errorf("call %d (-want +got):\n%s", i, diff)
			}
		}
	})
}

// Another server's clock may be in force by the time of the look-up.
func TestRecallBesideOtherClocks(t *testing.T) { // B03, R2
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		for _, step := range []int64{-clockSlack, -1, 1, clockSlack} {
			q.publish(t, body(1))
			held := q.take(t, 1)
			q.pass(30 + step)
			if found := q.recall(t, name(held[0]), 30); len(found) != 1 {
				t.Errorf("a clock %d s off hides the call", step)
			}
			q.pass(-30 - step)
		}
	})
}

// The search agrees with a plain look at every member, among crowds of one second, renewed leases, fractional scores
// and members that nobody here has written.
func TestRecallAgreesWithAScan(t *testing.T) { // B03
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		for seed := range uint64(10) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			q.clear(t)
			want := map[string][]string{}
			var members []entry
			for range 1 + rnd.IntN(60) {
				// Few digits, so that names share beginnings; one call stands at one score.
				call := strings.Repeat(fmt.Sprintf("%x%x", rnd.IntN(2)*14, rnd.IntN(16)), 12)
				if want[call] != nil {
					continue
				}
				score := float64(start + lease - rnd.IntN(8))
				for i := range 1 + rnd.IntN(12) {
					member := fmt.Sprintf("%s%08x:%s", call, i+1, body(rnd.IntN(3)))
					want[call] = append(want[call], member)
					members = append(members, entry{member, score})
				}
			}
			for i, odd := range []string{"", ":", "zzz", "\xff\x00", "EEEE", "e", "-", "{}", strings.Repeat("e", 23), "\x00"} {
				members = append(members, entry{odd, float64(start+lease-i%8) + float64(i%2)*0.5})
			}
			q.score(t, q.keys.Deadlines, members...)
			for call, wanted := range want {
				if diff := cmp.Diff(wanted, handles(q.recall(t, call, 9))); diff != "" {
					t.Fatalf("seed %d, call %s (-want +got):\n%s", seed, call, diff)
				}
			}
			for range 20 {
				if call := newToken(); q.recall(t, call, 9) != nil {
					t.Fatalf("seed %d: found something of %s", seed, call)
				}
			}
		}
	})
}

// The beginning of a name would find messages of others.
func TestRecallNeedsAWholeName(t *testing.T) { // B03
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q.publish(t, body(1))
		whole := name(q.take(t, 1)[0])
		for _, call := range []string{"", whole[:1], whole[:len(whole)-1], whole + "0"} {
			if res, err := q.Recall(t.Context(), call, time.Now()); !errors.Is(err, flow.ErrPermanent) || res.Lease != nil {
				t.Errorf("%q: %v, %v", call, items(res), err)
			}
		}
	})
}

// In the zset layout there is nothing to look for.
func TestRecallOfZset(t *testing.T) { // B03, Z4
	t.Parallel()
	each(t, flow.Zset, func(t *testing.T, q *queue) {
		q.publish(t, body(1))
		q.take(t, 1)
		if found := q.recall(t, "", 1); found != nil {
			t.Errorf("%d found", len(found))
		}
	})
}

// A full server answers, as nothing is written.
func TestFullServerRecall(t *testing.T) { // B03, B43
	t.Parallel()
	eachFull(t, func(t *testing.T, q *queue, fill func()) {
		if q.layout == flow.Zset {
			return
		}
		q.publish(t, bodies(0, 3)...)
		held := q.take(t, 3)
		fill()
		if found := q.recall(t, name(held[0]), 1); len(found) != 3 {
			t.Errorf("%d found, want 3", len(found))
		}
	})
}

// The reply of a reserve gets lost, then that of the look-up: the next one finds all, and nothing was sent twice
// but the look-up. A message that was acked through the look-up is gone.
func TestLostReserveReplyIsRecalled(t *testing.T) { // B03
	t.Parallel()
	for how, opts := range map[string][]faultproxy.SwallowOption{"reset": nil, "silence": {faultproxy.KeepOpen()}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			eachOwn(t, func(t *testing.T, q *queue, proxy *faultproxy.Proxy) {
				cycle(t, q) // makes the scripts known
				q.clear(t)
				q.publish(t, bodies(0, 20)...)
				proxy.ResetCounts()
				match := legacyReserve.hash
				if q.layout == flow.Zset {
					match = zsetReserve.hash
				}
				lost := proxy.SwallowNext(match, opts...)
				res, err := q.Reserve(t.Context(), everything(7))
				<-lost.Done()
				if !errors.Is(err, flow.ErrAmbiguous) || res.Lease != nil {
					t.Fatalf("reserve: %v", err)
				}
				if q.layout == flow.Zset {
					if res.Call != "" {
						t.Errorf("the call has a name, %q, and none of its messages tells it", res.Call)
					}
					return
				}
				again := proxy.SwallowNext(legacyRecall.hash, opts...)
				if _, err := q.Recall(t.Context(), res.Call, res.Sent); !errors.Is(err, flow.ErrTransient) {
					t.Fatalf("the first look-up: %v", err)
				}
				<-again.Done()
				found := q.recall(t, res.Call, 1)
				if diff := cmp.Diff(bodies(0, 7), texts(found)); diff != "" {
					t.Errorf("found (-want +got):\n%s", diff)
				}
				if n := proxy.Count(legacyReserve.hash); n != 1 {
					t.Errorf("%d reserves were sent", n)
				}
				if results := q.settle(t, acks(found...)...); !cmp.Equal(results, all(7, flow.Done)) {
					t.Errorf("acks: %v", results)
				}
				q.expect(t, state{Ready: bodies(7, 20)})
			})
		})
	}
}

// A name stands beside an ambiguous error alone: after any other the call took nothing.
func TestOnlyAmbiguousCallsAreNamed(t *testing.T) { // B03
	t.Parallel()
	each(t, flow.Legacy, func(t *testing.T, q *queue) {
		q.do(t, "SET", q.keys.Deadlines, "somebody else's")
		if res, err := q.Reserve(t.Context(), everything(1)); !errors.Is(err, flow.ErrPermanent) || res.Call != "" {
			t.Errorf("call %q, %v", res.Call, err)
		}
		q.do(t, "DEL", q.keys.Deadlines)
		if res := q.reserve(t, everything(1)); res.Call != "" {
			t.Errorf("a call that succeeded is named %q", res.Call)
		}
	})
}
