package lua

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// busy is a call of a store that would change much, were its keys in order.
type busy struct {
	name string
	keys func(k Keys) []string // the keys its script uses
	call func(ctx context.Context, q *queue, held []*flow.Reservation) error
}

var busyCalls = map[flow.Layout][]busy{
	flow.Legacy: {
		{"reserve", func(k Keys) []string { return []string{k.Ready, k.Processing, k.Deadlines} }, busyReserve},
		{
			"settle", func(k Keys) []string { return []string{k.Processing, k.Deadlines, k.Ready, k.DeadLetters} },
			func(ctx context.Context, q *queue, held []*flow.Reservation) error {
				_, err := q.Settle(ctx, []flow.Settlement{
					acks(held[0])[0], settlement(held[1], flow.Requeue, "r"), settlement(held[2], flow.DeadLetter, "d"),
				})
				return err
			},
		},
		{"hand back", func(k Keys) []string { return []string{k.Processing, k.Deadlines, k.Ready} }, busyHandBack},
		{"renew", func(k Keys) []string { return []string{k.Deadlines} }, busyRenew},
		{"sweep", func(k Keys) []string { return []string{k.Ready, k.Processing, k.Deadlines} }, busySweep},
		{"audit", func(k Keys) []string { return []string{k.Processing, k.Deadlines} }, busyAudit},
		{
			"adopt", func(k Keys) []string { return []string{k.Processing, k.Deadlines} },
			func(ctx context.Context, q *queue, _ []*flow.Reservation) error {
				_, err := q.Adopt(ctx, []string{"orphan"})
				return err
			},
		},
		{"recall", func(k Keys) []string { return []string{k.Deadlines} }, busyRecall},
		{"publish", func(k Keys) []string { return []string{k.Ready} }, busyPublish},
	},
	flow.Zset: {
		{"reserve", func(k Keys) []string {
			return []string{k.Ready, k.Delayed, k.Reserved, k.Notify, k.DeadLetters, k.DeadLetterNotify}
		}, busyReserve},
		{
			"settle", func(k Keys) []string {
				return []string{k.Reserved, k.Delayed, k.DeadLetters, k.DeadLetterNotify}
			},
			func(ctx context.Context, q *queue, held []*flow.Reservation) error {
				_, err := q.Settle(ctx, []flow.Settlement{
					{Reservation: held[0], Op: flow.Release, Delay: 1}, settlement(held[1], flow.Return, "r"),
					settlement(held[2], flow.DeadLetter, "d"),
				})
				return err
			},
		},
		{"hand back", func(k Keys) []string { return []string{k.Reserved, k.Ready, k.Notify} }, busyHandBack},
		{"renew", func(k Keys) []string { return []string{k.Reserved} }, busyRenew},
		{"sweep", func(k Keys) []string { return []string{k.Ready, k.Delayed, k.Reserved, k.Notify} }, busySweep},
		{"audit", func(k Keys) []string { return []string{k.Reserved} }, busyAudit},
		{"publish", func(k Keys) []string { return []string{k.Ready, k.Notify} }, busyPublish},
		{
			"publish delayed", func(k Keys) []string { return []string{k.Delayed} },
			func(ctx context.Context, q *queue, _ []*flow.Reservation) error {
				_, err := q.Store.(*Zset).PublishDelayed(ctx, []Delayed{{1, "later"}})
				return err
			},
		},
	},
}

func busyReserve(ctx context.Context, q *queue, _ []*flow.Reservation) error {
	_, err := q.Reserve(ctx, everything(100))
	return err
}

func busyHandBack(ctx context.Context, q *queue, held []*flow.Reservation) error {
	_, err := q.HandBack(ctx, held)
	return err
}

func busyRenew(ctx context.Context, q *queue, held []*flow.Reservation) error {
	_, err := q.Renew(ctx, handles(held))
	return err
}

func busySweep(ctx context.Context, q *queue, _ []*flow.Reservation) error {
	_, err := q.Sweep(ctx, 1000)
	return err
}

func busyAudit(ctx context.Context, q *queue, _ []*flow.Reservation) error {
	_, err := q.Audit(ctx)
	return err
}

func busyRecall(ctx context.Context, q *queue, held []*flow.Reservation) error {
	_, err := q.Recall(ctx, name(held[0]), time.Now())
	return err
}

func busyPublish(ctx context.Context, q *queue, _ []*flow.Reservation) error {
	return q.Store.(publisher).Publish(ctx, []string{"new"})
}

// prepare gives every script much to do: leases run out, delayed messages, poison, orphans, dead letters.
func (q *queue) prepare(t testing.TB) []*flow.Reservation {
	t.Helper()
	q.clear(t)
	q.publish(t, bodies(0, 4)...)
	held := q.take(t, 3)
	q.publish(t, "poison")
	if q.layout == flow.Zset {
		q.score(t, q.keys.Delayed, entry{"due", start}, entry{"later", start + 1<<30})
	} else {
		q.fill(t, q.keys.Processing, "orphan")
	}
	q.pass(lease)
	return held
}

// With any of its keys of another type, a script names that key and has changed nothing; once somebody removes
// the key, the same call works (M5: scripts do not roll back, so the types are checked first).
func TestWrongTypeStopsBeforeTheFirstWrite(t *testing.T) { // B07
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		for _, c := range busyCalls[q.layout] {
			for _, key := range c.keys(q.keys) {
				t.Run(c.name+" "+strings.TrimPrefix(key, q.b.Prefix), func(t *testing.T) {
					held := q.prepare(t)
					q.do(t, "SET", key, "somebody else's")
					q.untouched(t, c.name, func() {
						err := c.call(t.Context(), q, held)
						if !errors.Is(err, flow.ErrPermanent) || errors.Is(err, flow.ErrAmbiguous) ||
							!strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), key) {
							t.Errorf("%v, want ErrPermanent, WRONGTYPE and %s", err, key)
						}
					})
					q.do(t, "DEL", key)
					if err := c.call(t.Context(), q, held); err != nil {
						t.Errorf("after the key was removed: %v", err)
					}
				})
			}
		}
	})
}

// A settle that needs some keys only must not stop because of the others.
func TestSettleChecksOnlyTheKeysItNeeds(t *testing.T) { // B07
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		held := q.prepare(t)
		for _, key := range []string{q.keys.DeadLetters, q.keys.Delayed} {
			if key != "" {
				q.do(t, "SET", key, "somebody else's")
			}
		}
		if results := q.settle(t, acks(held[0])...); results[0] != flow.Done {
			t.Errorf("ack: %v", results[0])
		}
	})
}

func TestDepthOfWrongType(t *testing.T) { // B07
	t.Parallel()
	eachLayout(t, func(t *testing.T, q *queue) {
		q.do(t, "SET", q.keys.DeadLetters, "somebody else's")
		if _, err := q.Depth(t.Context()); !errors.Is(err, flow.ErrPermanent) {
			t.Errorf("%v, want ErrPermanent", err)
		}
	})
}
