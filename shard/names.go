package shard

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/babelpool/babelpool/lua"
)

const (
	slots = 16384 // of every cluster
	most  = 1024  // shards: a pool has several loops and a connection for each
)

// Names are the names of a queue's n shards, such as orders:{48576}. The tag of shard i is the smallest number, from 0
// on and without leading zeros, whose slot is the middle of the i-th of n equal ranges: floor((2i+1)·16384 / 2n).
// Masters with equal ranges of slots, as cluster tools deal them out, so have equally many shards, or one more or less
// where n is no multiple of their number.
//
// The names are the same in every process and version. They depend on n: other numbers of shards are, but for those in
// the same place, other queues.
//
// It returns ErrNames when the name is empty or holds a brace, or n is not from 1 to 1,024.
func Names(queue string, n int) ([]string, error) {
	switch {
	case queue == "":
		return nil, fmt.Errorf("%w: the queue's name is empty (R4)", ErrNames)
	case strings.ContainsAny(queue, "{}"):
		return nil, fmt.Errorf("%w: %q holds a brace; each shard gets a hash tag of its own (R3)", ErrNames, queue)
	case n < 1 || n > most:
		return nil, fmt.Errorf("%w: %d shards of %q are not from 1 to %d", ErrNames, n, queue, most)
	}
	tags := tagsBySlot()
	names := make([]string, n)
	for i := range names {
		names[i] = queue + ":{" + strconv.Itoa(tags[(2*i+1)*slots/(2*n)]) + "}"
	}
	return names, nil
}

// tagsBySlot holds, for each slot, the smallest number that is in it. The search takes some milliseconds, once.
var tagsBySlot = sync.OnceValue(func() (tags [slots]int) {
	for i := range tags {
		tags[i] = -1
	}
	for number, left := 0, slots; left > 0; number++ { // ends below 110,000
		if slot := lua.Slot(strconv.Itoa(number)); tags[slot] < 0 {
			tags[slot] = number
			left--
		}
	}
	return tags
})

// Of is the shard, from 0 on, to which a key belongs when there are n: floor(slot·n / 16384), where slot is the key's
// slot as Redis's own CLUSTER KEYSLOT computes it, so that every client of a cluster can. The same key has the same shard
// in every process and version, for as long as n is the same. n must be at least 1.
func Of(key string, n int) int { return lua.Slot(key) * n / slots }
