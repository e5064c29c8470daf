package lua

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Moving is the list of what is on its way from this one to another slot of a cluster. It is in this one's own slot.
func (l *List) Moving() *List {
	return &List{client: l.client, key: l.key + movingSuffix, leases: l.leases}
}

// Key is where the list is.
func (l *List) Key() string { return l.key }

// Shifted says what became of a delayed message.
type Shifted uint8

// What becomes of a delayed message.
const (
	ShiftDone Shifted = iota
	ShiftGone         // it was not delayed any more
	ShiftTwin         // the target's delayed holds the same bytes already; it stays
)

// DelayedSet are the delayed messages of a zset queue, for tools.
type DelayedSet struct {
	client     redis.UniversalClient
	key, lease string

	permission permission
}

// OpenDelayed is the delayed messages of a queue.
func OpenDelayed(client redis.UniversalClient, keys Keys) *DelayedSet {
	return &DelayedSet{client: client, key: keys.Delayed, lease: keys.Reserved}
}

// Len is how many there are.
func (d *DelayedSet) Len(ctx context.Context) (int64, error) {
	n, err := d.client.ZCard(ctx, d.key).Result()
	return n, classify(fmt.Sprintf("count %q", d.key), err)
}

// Range reads up to n of them, from an index on, the one that is due next first.
func (d *DelayedSet) Range(ctx context.Context, from, n int64) ([]string, error) {
	members, err := d.client.ZRange(ctx, d.key, from, from+n-1).Result()
	return members, classify(fmt.Sprintf("read %q", d.key), err)
}

// ShiftTo moves members, at most MostTaken, to the delayed messages of another queue, where they keep their time. texts stands
// beside members. One atomic step; both keys must be in one slot. Safe to send again.
func (d *DelayedSet) ShiftTo(ctx context.Context, target Keys, members, texts []string) ([]Shifted, error) {
	return d.shift(ctx, "delayed", []string{d.key, target.Delayed}, members, texts)
}

// ShiftToList moves members to the end of a list, with its tokens, as ShiftTo does.
func (d *DelayedSet) ShiftToList(ctx context.Context, list *List, members, texts []string) ([]Shifted, error) {
	keys := []string{d.key, list.key}
	if list.notify != "" {
		keys = append(keys, list.notify)
	}
	return d.shift(ctx, "list", keys, members, texts)
}

func (d *DelayedSet) shift(ctx context.Context, kind string, keys, members, texts []string) ([]Shifted, error) {
	// A script that is refused a command half-way would lose what it has removed.
	if err := d.permission.ask(ctx, d.client, d.lease, "all"); err != nil {
		return nil, err
	}
	c := newCall(shiftDelayed, keys, 1+2*len(members)).arg(kind)
	for i := range members {
		c.arg(&members[i], &texts[i])
	}
	reply, err := c.run(ctx, d.client)
	d.permission.heed(err)
	if err != nil {
		return nil, err
	}
	results := make([]Shifted, len(members))
	for at := 0; at+1 < len(reply); at += 2 {
		i, err := strconv.Atoi(reply[at])
		if err != nil || i < 1 || i > len(members) {
			return nil, malformed(shiftDelayed, reply[at])
		}
		switch reply[at+1] {
		case "gone":
			results[i-1] = ShiftGone
		case "twin":
			results[i-1] = ShiftTwin
		default:
			return nil, malformed(shiftDelayed, reply[at+1])
		}
	}
	return results, nil
}

// SameSlot reports whether one script can work on both queues: whether their keys are in the same slot, or there is only one
// server.
func SameSlot(client redis.UniversalClient, a, b Keys) bool {
	_, cluster := client.(*redis.ClusterClient)
	return !cluster || Slot(a.Ready) == Slot(b.Ready)
}
