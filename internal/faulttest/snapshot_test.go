package faulttest

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/pool"
)

// snapshot is every key of a queue at one instant.
type snapshot struct {
	ready, flight, delayed, dead []string
	leases                       []string  // legacy: the values the deadlines carry; nil in the zset layout
	scores                       []float64 // of the leases, in their order (zset: of flight)
	notify                       int64
}

type place struct {
	name  string
	texts []string
}

func (s snapshot) places() []place {
	return []place{{"ready", s.ready}, {"in flight", s.flight}, {"delayed", s.delayed}, {"dead letters", s.dead}}
}

// snapshot reads all keys in one transaction: a message on its way from one to another is seen once.
func (r *rig) snapshot() snapshot {
	r.t.Helper()
	var (
		ready, flight, dead *redis.StringSliceCmd
		leases, delayed     *redis.ZSliceCmd
		notify              *redis.IntCmd
		ctx                 = context.Background()
		k                   = r.keys
	)
	_, err := r.control.TxPipelined(ctx, func(p redis.Pipeliner) error {
		ready, dead = p.LRange(ctx, k.Ready, 0, -1), p.LRange(ctx, k.DeadLetters, 0, -1)
		if r.layout == pool.Legacy {
			flight, leases = p.LRange(ctx, k.Processing, 0, -1), p.ZRangeWithScores(ctx, k.Deadlines, 0, -1)
			return nil
		}
		leases, delayed = p.ZRangeWithScores(ctx, k.Reserved, 0, -1), p.ZRangeWithScores(ctx, k.Delayed, 0, -1)
		notify = p.LLen(ctx, k.Notify)
		return nil
	})
	if err != nil {
		r.t.Fatalf("reading the keys: %v", err)
	}
	s := snapshot{ready: ready.Val(), dead: dead.Val()}
	if r.layout == pool.Legacy {
		s.flight, s.leases = flight.Val(), []string{}
		for _, z := range leases.Val() {
			s.leases = append(s.leases, carried(member(z)))
			s.scores = append(s.scores, z.Score)
		}
		return s
	}
	for _, z := range leases.Val() {
		s.flight = append(s.flight, member(z))
		s.scores = append(s.scores, z.Score)
	}
	for _, z := range delayed.Val() {
		s.delayed = append(s.delayed, member(z))
	}
	s.notify = notify.Val()
	return s
}

func member(z redis.Z) string {
	text, _ := z.Member.(string) // always one in a reply
	return text
}

// tokenWidth is what stands before the value in a deadline member (L2).
const tokenWidth = len("0123456789abcdef0123456789abcdef:")

func carried(deadline string) string {
	if len(deadline) < tokenWidth {
		return deadline // no value that was published; the ledger will say so
	}
	return deadline[tokenWidth:]
}

// leaseKey is the key that holds the leases, as scores.
func (r *rig) leaseKey() string {
	if r.layout == pool.Legacy {
		return r.keys.Deadlines
	}
	return r.keys.Reserved
}
