package reserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// beside makes the reserver's queue one of several, with three slots of its own of the ten.
func beside(cfg *Config) { cfg.Batch, cfg.Share = 8, 3 }

// TestAsksForMoreThanItsShareOnlyForMessagesThatAreThere: a call to a server that does not answer would keep them from
// the other queues.
func TestAsksForMoreThanItsShareOnlyForMessagesThatAreThere(t *testing.T) { // R1
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Config)
		want   []int
	}{
		"beside others": {beside, []int{3, 8, 3}},
		"alone":         {func(cfg *Config) { cfg.Batch = 8 }, []int{8, 8, 8}},
		"small batches": {func(cfg *Config) { cfg.Batch, cfg.Share = 2, 3 }, []int{2, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(tc.change)
				g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
					return flow.Reserved{Sent: time.Now(), Left: map[int]int{0: 5}[call]}, nil
				}
				asked := of(g.run(t, time.Minute), "reserve")
				for i, want := range tc.want {
					if got := asked[i].req.Most; got != want {
						t.Errorf("call %d asked for %d, want %d", i, got, want)
					}
				}
			})
		})
	}
}

// TestAsksForOneWhileItsServerIsAway, and for its share again when it is back.
func TestAsksForOneWhileItsServerIsAway(t *testing.T) { // R1
	t.Parallel()
	for name, failure := range map[string]error{"transient": errTransient, "permanent": errPermanent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(beside)
				g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
					switch call {
					case 0:
						return flow.Reserved{Sent: time.Now(), Left: 5}, nil
					case 1, 2, 3:
						return flow.Reserved{}, failure
					}
					return flow.Reserved{Sent: time.Now()}, nil
				}
				asked := of(g.run(t, time.Minute), "reserve")
				for i, want := range []int{3, 8, 1, 1, 1, 3} {
					if got := asked[i].req.Most; got != want {
						t.Errorf("call %d asked for %d, want %d", i, got, want)
					}
				}
			})
		})
	}
}

// TestDoubtKeepsTheShare of a queue among others. If more messages are found than slots were kept, all are handed on,
// and no slot is given out until as many are back.
func TestDoubtKeepsTheShare(t *testing.T) { // B03
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(beside)
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			switch call {
			case 0:
				return flow.Reserved{Sent: time.Now(), Left: 20}, nil
			case 1:
				return lost("a")
			}
			return flow.Reserved{Sent: time.Now()}, nil
		}
		const outage = 10 * time.Second
		g.found = func(int) (flow.Reserved, error) {
			if time.Since(g.began) < outage {
				return flow.Reserved{}, errTransient
			}
			return got(8, 10), nil
		}
		stop := g.running(t)
		time.Sleep(outage)
		g.happened()
		free, _ := g.slots.Free()
		if free != capacity-3 {
			t.Errorf("%d slots are free while in doubt, want %d", free, capacity-3)
		}
		if n, bytes, err := g.slots.Acquire(t.Context(), 0, capacity, 1); n != free || err != nil {
			t.Fatal(n, err) // another queue takes them
		} else {
			g.slots.Release(0, 0, bytes)
		}
		time.Sleep(time.Second)
		if n, _ := g.slots.Free(); n != -5 || len(g.out) != 8 {
			t.Errorf("%d messages given, %d slots free", len(g.out), n)
		}
		if asked := of(g.happened(), "reserve"); len(asked) != 0 {
			t.Errorf("%d reserves without a slot", len(asked))
		}
		g.slots.Release(0, 6, 0)
		g.happened()
		time.Sleep(time.Second)
		if asked := of(g.happened(), "reserve"); len(asked) == 0 || asked[0].req.Most != 1 {
			t.Errorf("with one free slot: %v", asked)
		}
		stop()
	})
}
