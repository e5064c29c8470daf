package lua

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

// eachFull runs a body for both layouts on a real server of its own. fill makes that server full: it refuses
// every command that would need memory.
func eachFull(t *testing.T, fn func(t *testing.T, q *queue, fill func())) {
	t.Helper()
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			server := testredis.Server(t, redisproc.Config{MaxMemory: "64mb", MaxMemoryPolicy: "noeviction"})
			client := testredis.Client(t, server.URL())
			b := testredis.Backend{
				Name: "redis", Addr: server.Addr(), URL: server.URL(), Client: client,
				Prefix: testredis.Prefix(t), Real: true, Server: server,
			}
			fn(t, newQueue(t, b, layout, nil), func() {
				t.Helper()
				if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
					t.Fatal(err)
				}
				if err := client.Set(t.Context(), "no", "room", 0).Err(); !errors.Is(classify("set", err), ErrFull) {
					t.Fatalf("the server is not full: %v", err)
				}
			})
		})
	}
}

// A full server refuses new messages with an error of its own kind and stores none of them.
func TestFullServerRefusesPublish(t *testing.T) { // B43
	t.Parallel()
	eachFull(t, func(t *testing.T, q *queue, fill func()) {
		q.publish(t, body(1))
		fill()
		q.untouched(t, "a refused publish", func() {
			err := q.Store.(publisher).Publish(t.Context(), bodies(2, 5))
			if !errors.Is(err, ErrFull) || !errors.Is(err, flow.ErrTransient) || errors.Is(err, flow.ErrAmbiguous) {
				t.Errorf("publish: %v, want ErrFull, transient, not ambiguous", err)
			}
			if q.layout == flow.Zset {
				_, err := q.Store.(*Zset).PublishDelayed(t.Context(), []Delayed{{5, "a"}, {6, "b"}})
				if !errors.Is(err, ErrFull) || errors.Is(err, flow.ErrAmbiguous) {
					t.Errorf("publish delayed: %v, want ErrFull", err)
				}
			}
		})
	})
}

// Everything a consumer does runs to its end on a full server, so that it drains: the first write of each script
// is a removal (M8).
func TestFullServerDrains(t *testing.T) { // B43, L8, L9
	t.Parallel()
	eachFull(t, func(t *testing.T, q *queue, fill func()) {
		q.publish(t, bodies(0, 12)...)
		expired := q.take(t, 2) // body(0) and body(1)
		q.pass(lease / 2)
		held := q.take(t, 6)
		q.pass(lease / 2)
		fill()

		// The sweep, alone and before a reserve.
		if moved := q.sweep(t, 1); moved != 1 {
			t.Errorf("%d moved, want 1", moved)
		}
		res := q.reserve(t, everything(1))
		if got := readies(items(res)); res.Moved != 1 || len(got) != 1 || got[0] != body(8) {
			t.Errorf("reserve moved %d and took %q", res.Moved, got)
		}
		if results := q.renew(t, handles(append(held, expired...))...); !cmp.Equal(results, append(all(6, flow.Done), all(2, flow.Late)...)) {
			t.Errorf("renew: %v", results)
		}
		batch := []flow.Settlement{acks(held[0])[0], settlement(held[1], flow.DeadLetter, sized(1, 4000))}
		if q.layout == flow.Zset {
			batch = append(batch, flow.Settlement{Reservation: held[2], Op: flow.Release, Delay: 9},
				flow.Settlement{Reservation: held[3], Op: flow.Return, Text: held[3].Ready(), Delay: 9})
		} else {
			batch = append(batch, settlement(held[2], flow.Requeue, counted(4, 1)), settlement(held[3], flow.Requeue, counted(5, 1)))
		}
		if results := q.settle(t, batch...); !cmp.Equal(results, all(4, flow.Done)) {
			t.Errorf("settle: %v", results)
		}
		if results := q.handBack(t, held[4:]...); !cmp.Equal(results, all(2, flow.Done)) {
			t.Errorf("hand back: %v", results)
		}
		q.settle(t, acks(items(res)...)...)

		// And the rest of it, to the end.
		q.pass(9)
		for got := items(q.reserve(t, everything(100))); len(got) > 0; got = items(q.reserve(t, everything(100))) {
			q.settle(t, acks(got...)...)
		}
		want := state{DeadLetters: []string{sized(1, 4000)}}
		if q.layout == flow.Zset {
			want.DeadNotify = 1
		}
		q.expect(t, want)
	})
}

// Poison leaves a full server's queue too, and an orphan can be adopted.
func TestFullServerPoisonAndAdoption(t *testing.T) { // B08, B43, L7
	t.Parallel()
	eachFull(t, func(t *testing.T, q *queue, fill func()) {
		if q.layout == flow.Legacy {
			q.fill(t, q.keys.Processing, "orphan")
			fill()
			if n := q.adopt(t, "orphan"); n != 1 {
				t.Errorf("%d adopted, want 1", n)
			}
			return
		}
		q.publish(t, "poison", body(1))
		fill()
		if res := q.reserve(t, everything(2)); len(res.Poison) != 1 || len(items(res)) != 1 {
			t.Errorf("%d poison, %d reserved, want one of each", len(res.Poison), len(items(res)))
		}
	})
}

// A wait that the full server refuses says so; the caller then polls.
func TestFullServerWait(t *testing.T) { // B43
	t.Parallel()
	eachFull(t, func(t *testing.T, q *queue, fill func()) {
		if q.layout == flow.Zset {
			return // BLPOP needs no memory
		}
		fill()
		if _, err := q.Wait(t.Context()); !errors.Is(err, ErrFull) || !errors.Is(err, flow.ErrTransient) {
			t.Errorf("%v, want ErrFull", err)
		}
	})
}
