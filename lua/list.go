package lua

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// MostTaken is the most records one Take carries.
const MostTaken = 500

// List is a list of texts of one queue, its dead letters or its ready list, for tools that read and empty it. Safe for
// concurrent use, also while consumers and publishers work on it.
type List struct {
	client      redis.UniversalClient
	key, notify string // notify is empty where the list has no tokens
	leases      string // of the queue; permissions are asked about with it

	permission permission
}

// DeadLetters are the dead letters of a queue.
func DeadLetters(client redis.UniversalClient, keys Keys) *List {
	return &List{client: client, key: keys.DeadLetters, notify: keys.DeadLetterNotify, leases: keys.Leases()}
}

// Ready is the ready list of a queue.
func Ready(client redis.UniversalClient, keys Keys) *List {
	return &List{client: client, key: keys.Ready, notify: keys.Notify, leases: keys.Leases()}
}

// Len is how many there are.
func (l *List) Len(ctx context.Context) (int64, error) {
	n, err := l.client.LLen(ctx, l.key).Result()
	return n, classify(fmt.Sprintf("count %q", l.key), err)
}

// Range reads up to n of them, from an index on, oldest first.
func (l *List) Range(ctx context.Context, from, n int64) ([]string, error) {
	records, err := l.client.LRange(ctx, l.key, from, from+n-1).Result()
	return records, classify(fmt.Sprintf("read %q", l.key), err)
}

// Add puts records at the end, with their tokens where the layout has some (D1). It is sent once, with the meaning of
// errors that a publish has.
func (l *List) Add(ctx context.Context, records []string) error {
	if l.notify == "" {
		err := push(ctx, l.client, l.key, records)
		return classify(fmt.Sprintf("add to %q", l.key), err)
	}
	c := newCall(zsetPublish, []string{l.key, l.notify}, len(records))
	for i := range records {
		c.arg(&records[i])
	}
	_, err := c.run(ctx, l.client)
	return err
}

// Shares reports whether Take can move texts to another list in one step: whether both are in the same slot, or there is only
// one server.
func (l *List) Shares(target *List) bool {
	_, cluster := l.client.(*redis.ClusterClient)
	return !cluster || Slot(l.key) == Slot(target.key)
}

// Take removes records, at most MostTaken, and puts the text of each that was still there at the tail of the target, with
// its tokens, all in one step; with a nil target it only removes. It says of each record whether it was there. texts
// stands beside records and is not looked at without a target. It may be sent again after a lost reply: what was moved is
// not there any more, and is then told as such.
func (l *List) Take(ctx context.Context, target *List, records, texts []string) ([]bool, error) {
	// A script that is refused a command half-way would lose the records it has removed.
	if err := l.permission.ask(ctx, l.client, l.leases, "all"); err != nil {
		return nil, err
	}
	keys, letters := []string{l.key}, ""
	add := func(letter, key string) {
		if key != "" {
			keys, letters = append(keys, key), letters+letter
		}
	}
	add("b", l.notify)
	if target != nil {
		add("r", target.key)
		add("t", target.notify)
	}
	c := newCall(takeDead, keys, 2+2*len(records)).arg(newToken()+"00000000", letters)
	none := ""
	for i := range records {
		text := &none
		if target != nil {
			text = &texts[i]
		}
		c.arg(&records[i], text)
	}
	reply, err := c.run(ctx, l.client)
	l.permission.heed(err)
	if err != nil {
		return nil, err
	}
	there := make([]bool, len(records))
	for i := range there {
		there[i] = true
	}
	for _, position := range reply {
		i, err := strconv.Atoi(position)
		if err != nil || i < 1 || i > len(records) {
			return nil, malformed(takeDead, position)
		}
		there[i-1] = false
	}
	return there, nil
}
