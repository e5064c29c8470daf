package acker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestTransientErrors is B13 (c): the same settlements go out until they pass, at the common rate, with one
// line of log for each change, and everything that comes meanwhile waits.
func TestTransientErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Zset, 100)
		const outage = 5 * time.Second
		g.answer = func(call) ([]flow.Result, error) {
			if time.Since(g.began) < outage {
				return nil, errTransient
			}
			return nil, nil
		}
		done := g.running(t.Context())
		g.send(flow.Ack, flow.Release, flow.Return)
		synctest.Wait()
		g.send(flow.Ack, flow.Ack)
		time.Sleep(outage + 2*time.Second)
		calls := g.sent()
		for i, c := range calls {
			want := "ack, release, return"
			if i == len(calls)-1 {
				want = "ack, ack"
			}
			if c.String() != want {
				t.Errorf("call %d at %s: %s, want %s", i, c.at, c, want)
			}
			if i >= 6 && c.at-calls[i-6].at <= time.Second {
				t.Errorf("seven calls within a second until %s", c.at)
			}
		}
		if last := calls[len(calls)-1].at; last > outage+1600*time.Millisecond {
			t.Errorf("settled %s after Redis was back", last-outage)
		}
		g.wantFreed(t, 5)
		g.logs.Want(t, "held up", "works again")
		if err := g.end(done); err != nil {
			t.Error(err)
		}
		g.wantCount(t, map[string]int64{"Acked": 3, "Released": 1, "Returned": 1})
	})
}

// TestAmbiguousErrors is Z4 and B13 (b): what wrote a text that may have been reserved anew is not sent again.
// Its lease recovers it. In the legacy layout every handle is unique, and everything is sent again.
func TestAmbiguousErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		layout flow.Layout
		ops    []flow.Op
		first  []string // calls until the reply of the first was lost
		then   []string
		count  map[string]int64
	}{
		{
			flow.Zset, []flow.Op{flow.Ack, flow.Return, flow.Release, flow.Return, flow.DeadLetter},
			[]string{"ack, return, release, return, dead-letter"}, []string{"ack, release, dead-letter"},
			map[string]int64{"Acked": 1, "Released": 1, "DeadLettered": 1, "Left": 2},
		},
		{flow.Zset, []flow.Op{flow.HandBack, flow.HandBack}, []string{"hand back, hand back"}, nil, map[string]int64{"Left": 2}},
		{flow.Zset, []flow.Op{flow.Return}, []string{"return"}, nil, map[string]int64{"Left": 1}},
		{
			flow.Legacy, []flow.Op{flow.Ack, flow.Requeue, flow.DeadLetter},
			[]string{"ack, requeue, dead-letter"}, []string{"ack, requeue, dead-letter"},
			map[string]int64{"Acked": 1, "Requeued": 1, "DeadLettered": 1},
		},
		{
			flow.Legacy, []flow.Op{flow.HandBack, flow.HandBack}, []string{"hand back, hand back"},
			[]string{"hand back, hand back"}, map[string]int64{"HandedBack": 2},
		},
	} {
		t.Run(fmt.Sprint(tc.layout, tc.first), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(tc.layout, 100)
				first := true
				g.answer = func(call) ([]flow.Result, error) {
					if first {
						first = false
						return nil, errAmbiguous
					}
					return nil, nil
				}
				g.send(tc.ops...)
				done := g.running(t.Context())
				g.wantSent(t, tc.first...)
				time.Sleep(time.Second)
				g.wantSent(t, tc.then...)
				g.wantFreed(t, len(tc.ops))
				g.wantCount(t, tc.count)
				if err := g.end(done); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// refuses answers like a server on which a key that these operations need has another type.
func refuses(ops ...flow.Op) func(call) ([]flow.Result, error) {
	return func(c call) ([]flow.Result, error) {
		if slices.ContainsFunc(ops, c.has) {
			return nil, errPermanent
		}
		return nil, nil
	}
}

// TestRefusedOnesHoldUpNobody is B13: a dead letter key of another type keeps dead letters waiting, and nothing
// else; once it is mended they go through.
func TestRefusedOnesHoldUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Zset, 100)
		g.answer = refuses(flow.DeadLetter)
		done := g.running(t.Context())
		g.send(flow.Ack, flow.DeadLetter, flow.Release, flow.Ack, flow.DeadLetter)
		g.wantSent(t, "ack, dead-letter, release, ack, dead-letter", "ack, ack", "release", "dead-letter, dead-letter")
		g.wantFreed(t, 3)

		for range 20 { // acks go on at full speed, and tell nobody that all is well
			g.send(flow.Ack)
			g.wantSent(t, "ack")
		}
		if d := time.Since(g.began); d != 0 {
			t.Errorf("they took %s", d)
		}
		g.send(flow.Ack, flow.HandBack, flow.DeadLetter)
		g.wantSent(t, "ack, dead-letter", "ack", "dead-letter", "hand back")
		g.logs.Want(t, "held up")

		time.Sleep(10 * time.Second) // tried again, slowly
		retries := g.sent()
		if len(retries) < 2 || len(retries) > 20 {
			t.Errorf("tried again %d times in 10 s", len(retries))
		}
		for _, c := range retries {
			if c.String() != "dead-letter, dead-letter, dead-letter" {
				t.Errorf("tried again: %s", c)
			}
		}
		g.wantFreed(t, 25)

		g.mu.Lock()
		g.answer = nil
		g.mu.Unlock()
		time.Sleep(8 * time.Second)
		g.wantSent(t, "dead-letter, dead-letter, dead-letter")
		g.logs.Want(t, "held up", "works again")
		g.wantFreed(t, 28)
		g.wantCount(t, map[string]int64{"Acked": 23, "Released": 1, "HandedBack": 1, "DeadLettered": 3})
		if err := g.end(done); err != nil {
			t.Error(err)
		}
	})
}

// TestRefusedAcksAreRetried too, also when several kinds were refused and go through one after the other.
func TestRefusedAcksAreRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Legacy, 100)
		g.answer = refuses(flow.Ack, flow.Requeue)
		done := g.running(t.Context())
		g.send(flow.Requeue, flow.Ack)
		g.wantSent(t, "requeue, ack", "ack", "requeue")
		time.Sleep(1600 * time.Millisecond)
		g.sent()
		g.mu.Lock()
		g.answer = refuses(flow.Requeue)
		g.mu.Unlock()
		time.Sleep(20 * time.Second)
		g.wantFreed(t, 1)
		g.logs.Want(t, "held up")
		g.mu.Lock()
		g.answer = nil
		g.mu.Unlock()
		time.Sleep(8 * time.Second)
		g.wantFreed(t, 2)
		g.logs.Want(t, "held up", "works again")
		if err := g.end(done); err != nil {
			t.Error(err)
		}
	})
}

// TestManyRefusedOnesGoOutInBatches keeps a call that may fail half-way, and be sent again, to one script.
func TestManyRefusedOnesGoOutInBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Zset, 10)
		g.answer = refuses(flow.Return)
		done := g.running(t.Context())
		for range 35 {
			g.send(flow.Return)
		}
		synctest.Wait()
		g.sent()
		g.mu.Lock()
		g.answer = nil
		g.mu.Unlock()
		time.Sleep(8 * time.Second)
		var sizes []int
		for _, c := range g.sent() {
			sizes = append(sizes, len(c.settled))
		}
		if !slices.Equal(sizes, []int{10, 10, 10, 5}) {
			t.Errorf("sent %v", sizes)
		}
		g.wantFreed(t, 35)
		if err := g.end(done); err != nil {
			t.Error(err)
		}
	})
}

// TestFlushGivesUp is B13 (d): when the time to flush is over, Run says how many settlements were not carried
// out, those included that it never sent.
func TestFlushGivesUp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer  func(call) ([]flow.Result, error)
		ops     []flow.Op
		unacked int
	}{
		"Redis is down": {
			func(call) ([]flow.Result, error) { return nil, errTransient }, slices.Repeat([]flow.Op{flow.Ack}, 7), 7,
		},
		"the dead letters are refused": {
			refuses(flow.DeadLetter), []flow.Op{flow.Ack, flow.DeadLetter, flow.Ack, flow.DeadLetter, flow.Leave}, 2,
		},
		"everything is refused": {
			func(call) ([]flow.Result, error) { return nil, errPermanent }, slices.Repeat([]flow.Op{flow.Ack, flow.HandBack}, 3), 6,
		},
		"a reply is lost": {
			// Of the first batch the return is left to its lease; the others' time never came.
			func(call) ([]flow.Result, error) { return nil, errAmbiguous }, slices.Repeat([]flow.Op{flow.Ack, flow.Return}, 3), 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				why := errors.New("the flush took too long")
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				g := newRig(flow.Zset, 2)
				g.answer = tc.answer
				g.send(tc.ops...)
				close(g.in)
				done := g.running(ctx)
				time.Sleep(5 * time.Second)
				cancel(why)
				err := <-done
				if d := time.Since(g.began); d != 5*time.Second {
					t.Errorf("gave up after %s", d)
				}
				if !errors.Is(err, why) || !strings.Contains(err.Error(), fmt.Sprintf("%q: %d settlements", "orders", tc.unacked)) {
					t.Errorf("got %v, want %d settlements and the cause", err, tc.unacked)
				}
				g.wantFreed(t, len(tc.ops)-tc.unacked)
			})
		})
	}
}

// TestFlushWaitsForTheRefused while there is time.
func TestFlushWaitsForTheRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Zset, 100)
		g.answer = func(call) ([]flow.Result, error) {
			if time.Since(g.began) < 3*time.Second {
				return nil, errPermanent
			}
			return nil, nil
		}
		g.send(flow.DeadLetter, flow.DeadLetter)
		close(g.in)
		if err := g.acker.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.wantFreed(t, 2)
		g.wantCount(t, map[string]int64{"DeadLettered": 2})
	})
}

// TestEndedContextWithAnOpenChannel counts what its senders still send, and does not spin meanwhile.
func TestEndedContextWithAnOpenChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := newRig(flow.Zset, 100)
		g.answer = func(call) ([]flow.Result, error) { return nil, errPermanent }
		done := g.running(ctx)
		g.send(flow.Ack)
		synctest.Wait()
		cancel()
		g.sent()
		g.wantSent(t)
		g.send(flow.Ack)
		g.wantSent(t, "ack")
		if err := g.end(done); err == nil || !strings.Contains(err.Error(), "2 settlements") {
			t.Errorf("got %v, want 2 settlements", err)
		}
	})
}
