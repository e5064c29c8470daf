package shard

import (
	"reflect"
	"slices"

	"github.com/babelpool/babelpool/pool"
)

// Queues are the shards as queues of a pool, each like the given one but for its name. Of several sets of names, as
// while the number of shards changes, each name counts once.
//
// The shards share the pool's workers and prefetch in equal parts, and lend what is idle. Each has the given Weight:
// beside other queues of the pool, n shards weigh n times that.
func Queues(like pool.Queue, sets ...[]string) []pool.Queue {
	var queues []pool.Queue
	seen := map[string]bool{}
	for _, name := range slices.Concat(sets...) {
		if seen[name] {
			continue
		}
		seen[name] = true
		like.Name = name
		queues = append(queues, like)
	}
	return queues
}

// Sum adds up the counts of some queues of a pool, as those of one queue with the name given. It is Paused when any of
// them is. Its Layout is that of the last; names that the pool does not know count nothing.
func Sum(name string, stats pool.Stats, names []string) pool.QueueStats {
	sum := pool.QueueStats{}
	for _, q := range stats.Queues {
		if slices.Contains(names, q.Name) {
			sum.Paused, sum.Layout = sum.Paused || q.Paused, q.Layout
			add(&sum, q)
		}
	}
	sum.Name = name
	return sum
}

// SumDepths adds up what some queues hold, as of one queue with the name given. Oldest is the earliest of theirs.
func SumDepths(name string, depths []pool.QueueDepth, names []string) pool.QueueDepth {
	sum := pool.QueueDepth{}
	for _, d := range depths {
		if !slices.Contains(names, d.Name) {
			continue
		}
		sum.Layout = d.Layout
		if sum.Oldest.IsZero() || !d.Oldest.IsZero() && d.Oldest.Before(sum.Oldest) {
			sum.Oldest = d.Oldest
		}
		add(&sum, d)
	}
	sum.Name = name
	return sum
}

// add adds every count, also those that are new in package pool.
func add[T any](sum *T, one T) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(one)
	for i := range from.NumField() {
		if from.Field(i).Type() == reflect.TypeFor[int64]() {
			to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
		}
	}
}
