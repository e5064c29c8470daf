package acker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// TestHandBack returns what nobody started in one call, in reservation order, and claims it first (B26).
func TestHandBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Zset, 2) // the batch is not its business
		g.answer = func(c call) ([]flow.Result, error) {
			results := make([]flow.Result, len(c.settled))
			results[1] = flow.Late
			return results, nil
		}
		var held []*flow.Reservation
		for i := range 6 {
			held = append(held, &g.lease.Items[i])
		}
		held[2].Lose()
		held[4].Settle() // somebody else's
		slices.Reverse(held)
		if err := g.acker.HandBack(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		calls := g.sent()
		if len(calls) != 1 || !calls[0].back {
			t.Fatalf("calls: %v", calls)
		}
		var orders []int
		for _, s := range calls[0].settled {
			orders = append(orders, s.Reservation.Order)
			if s.Reservation.State() != flow.Settled {
				t.Errorf("%s has state %d", s.Reservation, s.Reservation.State())
			}
		}
		if !slices.Equal(orders, []int{0, 1, 3, 5}) {
			t.Errorf("handed back: %v", orders)
		}
		g.wantCount(t, map[string]int64{"HandedBack": 3, "Late": 1})
		g.wantFreed(t, 6)
	})
}

func TestHandBackOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(flow.Legacy, 100)
		r := &g.lease.Items[0]
		r.Lose()
		if err := errors.Join(g.acker.HandBack(t.Context(), nil), g.acker.HandBack(t.Context(), []*flow.Reservation{r})); err != nil {
			t.Error(err)
		}
		g.wantSent(t)
		g.wantFreed(t, 1)
	})
}

// TestHandBackTriesOnce: what fails is left to its lease, and the error says how much.
func TestHandBackTriesOnce(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{errTransient, errAmbiguous, errPermanent} {
		for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(layout, 100)
				g.answer = func(call) ([]flow.Result, error) { return nil, fault }
				err := g.acker.HandBack(t.Context(), []*flow.Reservation{&g.lease.Items[0], &g.lease.Items[1], &g.lease.Items[2]})
				if !errors.Is(err, fault) || !strings.Contains(err.Error(), `"orders": 3 messages not handed back`) {
					t.Errorf("got %v", err)
				}
				g.wantSent(t, "hand back, hand back, hand back")
				if d := time.Since(g.began); d != 0 {
					t.Errorf("took %s", d)
				}
				g.wantCount(t, map[string]int64{"Left": 3})
				g.wantFreed(t, 3)
			})
		}
	}
}
