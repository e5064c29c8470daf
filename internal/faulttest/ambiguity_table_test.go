package faulttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
)

// doubted is a call of a store whose reply, or which itself, gets lost.
type doubted struct {
	name   string
	layout pool.Layout // 0 = both
	later  int64       // seconds that pass before it
	call   func(ctx context.Context, s tableStore, held []*flow.Reservation) (outcome []string, err error)
	then   after
}

// after is what a pool or a producer does once the outcome is unknown.
type after int

const (
	nothing after = iota // the producer is told that it may be stored
	resend               // a second one finds everything done
	lookUp               // by the call's name
	expire               // nothing; what the call has not done the lease does
)

// tableStore is a store with everything the table calls.
type tableStore interface {
	lua.Store
	publishing
}

func settling(op flow.Op, text string) func(context.Context, tableStore, []*flow.Reservation) ([]string, error) {
	return func(ctx context.Context, s tableStore, held []*flow.Reservation) ([]string, error) {
		return spelled(s.Settle(ctx, []flow.Settlement{
			{Reservation: held[1], Op: op, Text: text + `1`, Delay: 30}, {Reservation: held[2], Op: op, Text: text + `2`, Delay: 30},
		}))
	}
}

// spelled turns results into text.
func spelled(results []flow.Result, err error) ([]string, error) {
	words := make([]string, len(results))
	for i, result := range results {
		words[i] = fmt.Sprint(result)
	}
	return words, err
}

func everyDoubted() []doubted {
	publish := func(bodies ...string) func(context.Context, tableStore, []*flow.Reservation) ([]string, error) {
		return func(ctx context.Context, s tableStore, _ []*flow.Reservation) ([]string, error) {
			return nil, s.Publish(ctx, bodies)
		}
	}
	return []doubted{
		{"publish", 0, 0, publish("new"), nothing},
		{"publish batch", 0, 0, publish("new 1", "new 2", "new 3"), nothing},
		{"publish delayed", pool.Zset, 0, func(ctx context.Context, s tableStore, _ []*flow.Reservation) ([]string, error) {
			zset, ok := s.(*lua.Zset)
			if !ok {
				return nil, errors.ErrUnsupported
			}
			_, err := zset.PublishDelayed(ctx, []lua.Delayed{{Delay: 9, Body: "new"}})
			return nil, err
		}, nothing},
		{"reserve", 0, 0, func(ctx context.Context, s tableStore, _ []*flow.Reservation) ([]string, error) {
			res, err := s.Reserve(ctx, flow.ReserveRequest{Most: 2, Bytes: 1 << 20, FirstPop: 2, Migration: 100})
			if err != nil {
				return []string{res.Call}, err
			}
			return contents(res), nil
		}, lookUp},
		{"ack", 0, 0, settling(flow.Ack, ""), resend},
		{"requeue", pool.Legacy, 0, settling(flow.Requeue, `{"requeued":`), resend},
		{"release", pool.Zset, 0, settling(flow.Release, ""), resend},
		{"dead-letter", 0, 0, settling(flow.DeadLetter, `{"dead":`), resend},
		{"uncharged return", pool.Zset, 0, settling(flow.Return, `{"returned":`), expire},
		{"hand back", pool.Legacy, 0, handBack, resend},
		{"hand back", pool.Zset, 0, handBack, expire},
		{"renew", 0, 10, func(ctx context.Context, s tableStore, held []*flow.Reservation) ([]string, error) {
			return spelled(s.Renew(ctx, []string{held[0].Handle, held[3].Handle}))
		}, resend},
		{"sweep", 0, tableLease, func(ctx context.Context, s tableStore, _ []*flow.Reservation) ([]string, error) {
			moved, err := s.Sweep(ctx, 1000)
			return []string{strconv.Itoa(moved)}, err
		}, resend},
	}
}

func handBack(ctx context.Context, s tableStore, held []*flow.Reservation) ([]string, error) {
	return spelled(s.HandBack(ctx, held[1:3]))
}

// contents are the texts of what was reserved.
func contents(res flow.Reserved) []string {
	var all []string
	if res.Lease != nil {
		for i := range res.Lease.Items {
			all = append(all, res.Lease.Items[i].Text)
		}
	}
	return all
}

// Of the table's clock and leases, in seconds.
const (
	tableStart = 1_749_132_727
	tableLease = 60
)

// stage is a queue with six messages, four of them reserved, and a clock that only the test moves.
type stage struct {
	*rig
	clock atomic.Int64
	held  []*flow.Reservation
	sent  time.Time
}

func newStage(t *testing.T, layout pool.Layout) *stage {
	t.Helper()
	s := &stage{rig: newSharedRig(t, layout), sent: time.Now()}
	s.clock.Store(tableStart)
	direct, bodies := s.through(s.control), make([]string, 6)
	for i := range bodies {
		bodies[i] = fmt.Sprintf(`{"n":%d,"attempts":0}`, i)
	}
	must(t, direct.Publish(t.Context(), bodies))
	res, err := direct.Reserve(t.Context(), flow.ReserveRequest{Most: 4, Bytes: 1 << 20, FirstPop: 4, Migration: 100})
	must(t, err)
	if res.Lease == nil || len(res.Lease.Items) != 4 {
		t.Fatalf("reserved: %+v", res)
	}
	for i := range res.Lease.Items {
		s.held = append(s.held, &res.Lease.Items[i])
	}
	return s
}

// through is the stage's store behind a client.
func (s *stage) through(client redis.UniversalClient) tableStore {
	o := lua.Options{
		Client: client, Keys: s.keys, RetryAfter: tableLease * time.Second,
		Now: func() string { return strconv.FormatInt(s.clock.Load(), 10) },
	}
	if s.layout == pool.Zset {
		return lua.NewZset(o)
	}
	return lua.NewLegacy(o)
}

// same compares all keys of two stages, scores included.
func same(t *testing.T, what string, want, got snapshot) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(snapshot{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// unsent loses commands before they leave.
type unsent struct{ tries }

func (*unsent) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return io.ErrUnexpectedEOF }
}

// TestB03ALostReplyOfEachCall loses the reply of each call of the stores, does what a pool or a producer does then,
// and compares all keys with those of a queue where nothing was lost.
func TestB03ALostReplyOfEachCall(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		for _, d := range everyDoubted() {
			if d.layout != 0 && d.layout != layout {
				continue
			}
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				sound, lossy := newStage(t, layout), newStage(t, layout)
				sound.clock.Add(d.later)
				lossy.clock.Add(d.later)
				outcome, err := d.call(t.Context(), sound.through(sound.control), sound.held) // makes the script known, too
				must(t, err)
				want := sound.snapshot()

				proxy := faultproxy.Start(t, lossy.server.Addr())
				store := lossy.through(lossy.client("redis://" + proxy.Addr()))
				must(t, store.AskPermission(t.Context())) // or the first call would
				before := proxy.Count(lossy.keys.Ready)
				lost := proxy.SwallowNext(lossy.keys.Ready) // in every key of the queue
				left, err := d.call(t.Context(), store, lossy.held)
				testredis.Await(t, lost.Done(), patience, "a lost reply")
				if !errors.Is(err, flow.ErrTransient) || !errors.Is(err, flow.ErrAmbiguous) {
					t.Errorf("%v, want ErrTransient and ErrAmbiguous", err)
				}
				if n := proxy.Count(lossy.keys.Ready) - before; n != 1 {
					t.Errorf("sent %d times, want once", n)
				}
				same(t, "after the lost reply", want, lossy.snapshot())
				d.goOn(t, lossy, store, outcome, left)
				same(t, "in the end", want, lossy.snapshot())
				if d.then == expire {
					d.neverArrived(t, layout)
				}
			})
		}
	})
}

// goOn does what follows a lost reply.
func (d *doubted) goOn(t *testing.T, s *stage, store tableStore, outcome, left []string) {
	t.Helper()
	switch d.then {
	case resend:
		again, err := d.call(t.Context(), store, s.held)
		must(t, err)
		for _, word := range again {
			if late := fmt.Sprint(flow.Late); d.name != "renew" && word != late && word != "0" {
				t.Errorf("the second call has done something: %v", again)
			}
		}
	case lookUp:
		res, err := store.Recall(t.Context(), left[0], s.sent)
		must(t, err)
		want := outcome
		if s.layout == pool.Zset {
			want = nil
		}
		if diff := cmp.Diff(want, contents(res)); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
	case nothing, expire:
	}
}

// neverArrived loses the call itself where it is not sent again: the lease brings the messages back (Z4).
func (d *doubted) neverArrived(t *testing.T, layout pool.Layout) {
	t.Helper()
	s := newStage(t, layout)
	before := s.snapshot()
	client := s.client(s.server.URL())
	client.AddHook(&unsent{})
	if _, err := d.call(t.Context(), s.through(client), s.held); !errors.Is(err, flow.ErrAmbiguous) {
		t.Errorf("a call that never arrived: %v, want ErrAmbiguous", err)
	}
	same(t, "the call never arrived", before, s.snapshot())
	s.clock.Add(tableLease)
	if moved, err := s.through(s.control).Sweep(t.Context(), 1000); err != nil || moved != 4 {
		t.Errorf("%d moved, %v; want all 4", moved, err)
	}
	if now := s.snapshot(); len(now.ready) != 6 || len(now.flight)+len(now.delayed) != 0 {
		t.Errorf("%d ready, %d in flight, %d delayed; want 6, 0, 0", len(now.ready), len(now.flight), len(now.delayed))
	}
}
