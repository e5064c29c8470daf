package modeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/lua"
)

// state is everything a queue has in Redis. Only what its layout has is set.
type state struct {
	Ready      []string
	Processing []string // legacy
	Deadlines  []member // legacy
	Delayed    []member // zset
	Reserved   []member // zset
	Notify     int      // zset: tokens
	Dead       []string
	DeadNotify int // zset: tokens
}

// member is a member of a sorted set; sets stand in their order, by score, then by text.
type member struct {
	Text  string
	Score float64
}

// read reads all keys of a queue.
func read(ctx context.Context, client *redis.Client, k lua.Keys) (state, error) {
	var s state
	pipe := client.Pipeline()
	var done []func() error
	list := func(key string, to *[]string) {
		if key == "" {
			return
		}
		values := pipe.LRange(ctx, key, 0, -1)
		done = append(done, func() error {
			*to = values.Val()
			return values.Err()
		})
	}
	set := func(key string, to *[]member) {
		if key == "" {
			return
		}
		members := pipe.ZRangeWithScores(ctx, key, 0, -1)
		done = append(done, func() error {
			for _, m := range members.Val() {
				*to = append(*to, member{m.Member.(string), m.Score})
			}
			return members.Err()
		})
	}
	tokens := func(key string, to *int) {
		if key == "" {
			return
		}
		length := pipe.LLen(ctx, key)
		done = append(done, func() error {
			*to = int(length.Val())
			return length.Err()
		})
	}
	list(k.Ready, &s.Ready)
	list(k.Processing, &s.Processing)
	set(k.Deadlines, &s.Deadlines)
	set(k.Delayed, &s.Delayed)
	set(k.Reserved, &s.Reserved)
	tokens(k.Notify, &s.Notify)
	list(k.DeadLetters, &s.Dead)
	tokens(k.DeadLetterNotify, &s.DeadNotify)
	_, err := pipe.Exec(ctx)
	for _, one := range done {
		err = errors.Join(err, one())
	}
	return s, err
}

// wipe removes all keys of a queue.
func wipe(ctx context.Context, client *redis.Client, k lua.Keys) error {
	var keys []string
	for _, key := range []string{
		k.Ready, k.Processing, k.Deadlines, k.Delayed, k.Reserved, k.Notify, k.Paused, k.DeadLetters, k.DeadLetterNotify,
	} {
		if key != "" {
			keys = append(keys, key)
		}
	}
	return client.Del(ctx, keys...).Err()
}

// sorted gives members their order in Redis.
func sorted(set map[string]float64) []member {
	all := make([]member, 0, len(set))
	for text, score := range set {
		all = append(all, member{text, score})
	}
	slices.SortFunc(all, func(x, y member) int {
		switch {
		case x.Score < y.Score, x.Score == y.Score && x.Text < y.Text:
			return -1
		case x == y:
			return 0
		}
		return 1
	})
	return all
}

// tail is a list of the model: where the latest texts came in by two calls, their order is left open.
type tail struct {
	values []string
	loose  int // of the last ones
}

// push appends what came in one step.
func (l *tail) push(values ...string) { l.values = append(l.values, values...) }

// open appends what came in an order of its own.
func (l *tail) open(values ...string) {
	l.values = append(l.values, values...)
	l.loose = len(values)
}

// same compares the list with what stands in Redis, and then takes that over.
func (l *tail) same(what string, got []string) error {
	fixed := len(l.values) - l.loose
	same := len(got) == len(l.values) && slices.Equal(l.values[:fixed], got[:fixed])
	if same && l.loose > 0 {
		same = slices.Equal(slices.Sorted(slices.Values(l.values[fixed:])), slices.Sorted(slices.Values(got[fixed:])))
	}
	if !same {
		return fmt.Errorf("%s differs (-want +got, %d at the end in any order):\n%s", what, l.loose, cmp.Diff(l.values, got))
	}
	l.values, l.loose = slices.Clone(got), 0
	return nil
}

// sameSet compares a sorted set, scores included.
func sameSet(what string, want map[string]float64, got []member, name func(string) string) error {
	all := sorted(want)
	if slices.Equal(all, got) {
		return nil
	}
	// Tokens differ from run to run, and a message must not, if the sequence is to be made shorter.
	named := func(set []member) []member {
		set = slices.Clone(set)
		for i := range set {
			set[i].Text = name(set[i].Text)
		}
		return set
	}
	return fmt.Errorf("%s differs (-want +got):\n%s", what, cmp.Diff(named(all), named(got)))
}
