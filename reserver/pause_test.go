package reserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// While this process is paused nothing is asked of Redis, and the queue's slots are free for others.
func TestPausedHere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		g.cfg.Pause.SetHere(true)
		stop := g.running(t)
		time.Sleep(time.Minute)
		if events := names(g.happened()); events != "" {
			t.Errorf("while paused: %s", events)
		}
		if free, _ := g.slots.Free(); free != capacity {
			t.Errorf("%d slots are free, want all", free)
		}
		g.cfg.Pause.SetHere(false)
		if events := names(g.happened()); events != "reserve, wait" {
			t.Errorf("after the pause: %s", events)
		}
		stop()
	})
}

// A pause that begins while the reserver waits for slots takes effect when it has them.
func TestPausedWhileFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		n, bytes, err := g.slots.Acquire(t.Context(), 0, capacity, budget)
		if err != nil {
			t.Fatal(err)
		}
		stop := g.running(t)
		synctest.Wait()
		g.cfg.Pause.SetHere(true)
		g.slots.Release(0, n, bytes)
		if events := names(g.happened()); events != "" {
			t.Errorf("while paused: %s", events)
		}
		if free, _ := g.slots.Free(); free != capacity {
			t.Errorf("%d slots are free, want all", free)
		}
		stop()
	})
}

// The token that the wait took goes back when nothing is fetched for it, be it for a pause here or in Redis.
func TestPauseReturnsTheToken(t *testing.T) {
	t.Parallel()
	for name, here := range map[string]bool{"here": true, "everywhere": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(nil)
				g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
					return flow.Reserved{Sent: time.Now(), Paused: !here && call > 0}, nil
				}
				g.waiting = func(context.Context) (int, error) {
					g.cfg.Pause.SetHere(here)
					return 1, nil
				}
				stop := g.running(t)
				want := "reserve, wait, reserve, return token"
				if here {
					want = "reserve, wait, return token"
				}
				if events := names(g.happened()); events != want {
					t.Errorf("%s, want %s", events, want)
				}
				stop()
			})
		})
	}
}

// Each change of what Redis says is logged once.
func TestPauseIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(nil)
		g.answer = func(call int, _ flow.ReserveRequest) (flow.Reserved, error) {
			return flow.Reserved{Sent: time.Now(), Paused: call < 3}, nil
		}
		g.run(t, 10*time.Second)
		g.logs.Want(t, "queue is paused", "queue is no longer paused")
		if g.cfg.Pause.Any() {
			t.Error("still paused")
		}
	})
}
