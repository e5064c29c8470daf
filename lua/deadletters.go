package lua

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
)

// MostTaken is the most records one Take carries.
const MostTaken = 500

// DeadLetters are the dead letters of one queue, for tools that read and empty them. Safe for concurrent use, also while
// consumers add to them.
type DeadLetters struct {
	Client redis.UniversalClient
	Keys   Keys

	permission permission
}

// Len is how many there are.
func (d *DeadLetters) Len(ctx context.Context) (int64, error) {
	n, err := d.Client.LLen(ctx, d.Keys.DeadLetters).Result()
	return n, classify(fmt.Sprintf("count %q", d.Keys.DeadLetters), err)
}

// Range reads up to n of them, from an index on, oldest first.
func (d *DeadLetters) Range(ctx context.Context, from, n int64) ([]string, error) {
	records, err := d.Client.LRange(ctx, d.Keys.DeadLetters, from, from+n-1).Result()
	return records, classify(fmt.Sprintf("read %q", d.Keys.DeadLetters), err)
}

// Add puts records at the end, with their tokens where the layout has some (D1). It is sent once, with the meaning of
// errors that a publish has.
func (d *DeadLetters) Add(ctx context.Context, records []string) error {
	if d.Keys.DeadLetterNotify == "" {
		err := push(ctx, d.Client, d.Keys.DeadLetters, records)
		return classify(fmt.Sprintf("add to %q", d.Keys.DeadLetters), err)
	}
	c := newCall(zsetPublish, []string{d.Keys.DeadLetters, d.Keys.DeadLetterNotify}, len(records))
	for i := range records {
		c.arg(&records[i])
	}
	_, err := c.run(ctx, d.Client)
	return err
}

// Shares reports whether Take can move records to a queue in one step: whether its keys are in the same slot, or there
// is only one server.
func (d *DeadLetters) Shares(target Keys) bool {
	_, cluster := d.Client.(*redis.ClusterClient)
	return !cluster || Slot(d.Keys.DeadLetters) == Slot(target.Ready)
}

// Take removes records, at most MostTaken, and puts the text of each that was still there at the tail of the target's
// ready list, all in one step; with a nil target it only removes. It says of each record whether it was there. texts
// stands beside records and is not looked at without a target. It may be sent again after a lost reply: what was moved is
// not there any more, and is then told as such.
func (d *DeadLetters) Take(ctx context.Context, target *Keys, records, texts []string) ([]bool, error) {
	// A script that is refused a command half-way would lose the records it has removed.
	if err := d.permission.ask(ctx, d.Client, d.Keys.Deadlines+d.Keys.Reserved, "all"); err != nil { // one of the two is empty
		return nil, err
	}
	keys, letters := []string{d.Keys.DeadLetters}, ""
	add := func(letter, key string) {
		if key != "" {
			keys, letters = append(keys, key), letters+letter
		}
	}
	add("b", d.Keys.DeadLetterNotify)
	if target != nil {
		add("r", target.Ready)
		add("t", target.Notify)
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
	reply, err := c.run(ctx, d.Client)
	d.permission.heed(err)
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

// Publisher is what puts texts into a queue of either layout.
type Publisher interface {
	Publish(ctx context.Context, bodies []string) error
}

// Target is the store of a queue, for publishing.
func (d *DeadLetters) Target(layout flow.Layout, keys Keys) Publisher {
	if layout == flow.Zset {
		return NewZset(Options{Client: d.Client, Keys: keys})
	}
	return NewLegacy(Options{Client: d.Client, Keys: keys})
}
