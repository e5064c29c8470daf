package lua

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
)

// The clock of the tests starts at half past a whole second, so that floor(now) is not now (L2, Z1).
const (
	start = 1_749_132_727
	lease = 90
)

// queue is one queue of a test: its store, its keys, and a clock that only the test moves.
type queue struct {
	Store
	b      testredis.Backend
	layout flow.Layout
	keys   Keys
	client redis.UniversalClient // the test's own
	calls  redis.UniversalClient // the store's
	clock  *atomic.Int64         // whole seconds; the store sees half a second more
}

// eachLayout runs one test body for every layout on every backend: the conformance suite is made of these.
func eachLayout(t *testing.T, fn func(t *testing.T, q *queue)) {
	t.Helper()
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			each(t, layout, fn)
		})
	}
}

// each runs one test body for a layout on every backend.
func each(t *testing.T, layout flow.Layout, fn func(t *testing.T, q *queue)) {
	t.Helper()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		fn(t, newQueue(t, b, layout, nil))
	})
}

// newQueue makes a queue "orders" under the backend's prefix; change may alter its options.
func newQueue(t testing.TB, b testredis.Backend, layout flow.Layout, change func(*Options)) *queue {
	t.Helper()
	keys, err := NewKeys(layout, b.Prefix, "orders", "")
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{b: b, layout: layout, client: b.Client, clock: new(atomic.Int64)}
	q.clock.Store(start)
	o := Options{
		Client: b.Client, Keys: keys, RetryAfter: lease * time.Second,
		Now: func() string { return strconv.FormatInt(q.clock.Load(), 10) + ".5" },
	}
	if change != nil {
		change(&o)
	}
	q.keys, q.calls = o.Keys, o.Client
	q.Store = New(layout, o)
	t.Cleanup(q.Close)
	return q
}

// with is the same queue seen by another store, with altered options.
func (q *queue) with(t testing.TB, change func(*Options)) *queue {
	t.Helper()
	other := newQueue(t, q.b, q.layout, func(o *Options) {
		o.Keys = q.keys
		o.Now = func() string { return strconv.FormatInt(q.clock.Load(), 10) + ".5" }
		change(o)
	})
	other.clock = q.clock
	return other
}

// publisher is what both layouts publish with.
type publisher interface {
	Publish(ctx context.Context, bodies []string) error
	PublishIn(ctx context.Context, pipe redis.Pipeliner, bodies []string) error
}

func (q *queue) publish(t testing.TB, bodies ...string) {
	t.Helper()
	if err := q.Store.(publisher).Publish(t.Context(), bodies); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// everything is a request without limits of its own.
func everything(most int) flow.ReserveRequest {
	return flow.ReserveRequest{Most: most, Bytes: 1 << 40, FirstPop: most, Migration: 1000}
}

func (q *queue) reserve(t testing.TB, req flow.ReserveRequest) flow.Reserved {
	t.Helper()
	res, err := q.Reserve(t.Context(), req)
	if err != nil {
		t.Fatalf("reserve: %v", err)
	}
	return res
}

// take reserves up to n messages.
func (q *queue) take(t testing.TB, n int) []*flow.Reservation {
	t.Helper()
	return items(q.reserve(t, everything(n)))
}

// items are the reservations of an answer.
func items(res flow.Reserved) []*flow.Reservation {
	if res.Lease == nil {
		return nil
	}
	all := make([]*flow.Reservation, len(res.Lease.Items))
	for i := range all {
		all[i] = &res.Lease.Items[i]
	}
	return all
}

func (q *queue) settle(t testing.TB, settled ...flow.Settlement) []flow.Result {
	t.Helper()
	results, err := q.Settle(t.Context(), settled)
	if err != nil {
		t.Fatalf("settle: %v", err)
	}
	return results
}

func (q *queue) handBack(t testing.TB, held ...*flow.Reservation) []flow.Result {
	t.Helper()
	results, err := q.HandBack(t.Context(), held)
	if err != nil {
		t.Fatalf("hand back: %v", err)
	}
	return results
}

func (q *queue) sweep(t testing.TB, limit int) int {
	t.Helper()
	moved, err := q.Sweep(t.Context(), limit)
	if err != nil {
		t.Fatalf("sweep: %v", err)
	}
	return moved
}

// pass moves the clock by whole seconds.
func (q *queue) pass(seconds int64) { q.clock.Add(seconds) }

// acks are plain acks of reservations.
func acks(held ...*flow.Reservation) []flow.Settlement {
	settled := make([]flow.Settlement, len(held))
	for i, r := range held {
		settled[i].Reservation = r
	}
	return settled
}

// settlement is one settlement with a text.
func settlement(r *flow.Reservation, op flow.Op, text string) flow.Settlement {
	return flow.Settlement{Reservation: r, Op: op, Text: text}
}

// texts are the texts of reservations.
func texts(held []*flow.Reservation) []string {
	all := make([]string, len(held))
	for i, r := range held {
		all[i] = r.Text
	}
	return all
}

// readies are the ready texts of reservations.
func readies(held []*flow.Reservation) []string {
	all := make([]string, len(held))
	for i, r := range held {
		all[i] = r.Ready()
	}
	return all
}

// handles are what renewals take.
func handles(held []*flow.Reservation) []string {
	all := make([]string, len(held))
	for i, r := range held {
		all[i] = r.Handle
	}
	return all
}

// body is a small canonical message; equal numbers make equal bodies.
func body(n int) string { return counted(n, 0) }

// counted is body(n) after so many attempts.
func counted(n, attempts int) string { return fmt.Sprintf(`{"n":%d,"attempts":%d}`, n, attempts) }

// bodies are body(from) to body(to-1).
func bodies(from, to int) []string {
	all := make([]string, 0, max(0, to-from))
	for n := from; n < to; n++ {
		all = append(all, body(n))
	}
	return all
}

// stored is what a reserved body(n) looks like in flight: raised in the zset layout alone.
func (q *queue) stored(n int) string {
	if q.layout == flow.Zset {
		return counted(n, 1)
	}
	return body(n)
}

// sized is a canonical message of exactly so many bytes, told apart by its number.
func sized(n, bytes int) string {
	const frame = len(`{"p":"","attempts":0}`)
	name := strconv.Itoa(n) + " "
	return `{"p":"` + name + strings.Repeat("x", bytes-frame-len(name)) + `","attempts":0}`
}

// all are n equal results.
func all(n int, r flow.Result) []flow.Result {
	results := make([]flow.Result, n)
	for i := range results {
		results[i] = r
	}
	return results
}
