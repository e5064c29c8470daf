package shard_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/shard"
)

func TestQueues(t *testing.T) {
	t.Parallel()
	like := pool.Queue{Name: "ignored", Layout: pool.Zset, Weight: 3, RetryAfter: time.Minute}
	got := shard.Queues(like, []string{"a", "b"}, []string{"b", "c"})
	want := []pool.Queue{like, like, like}
	want[0].Name, want[1].Name, want[2].Name = "a", "b", "c"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	if got := shard.Queues(like); len(got) != 0 {
		t.Errorf("of no names: %v", got)
	}
}

// filled is a struct whose every count is from, from+1, …
func filled[T any](from int64) (s T) {
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		if v.Field(i).CanInt() && v.Field(i).Type() == reflect.TypeFor[int64]() {
			v.Field(i).SetInt(from + int64(i))
		}
	}
	return s
}

// sumOf checks that every count of a sum is that of two filled ones.
func sumOf[T any](t *testing.T, got T, first, second int64) {
	t.Helper()
	v := reflect.ValueOf(got)
	for i := range v.NumField() {
		if v.Field(i).Type() != reflect.TypeFor[int64]() {
			continue
		}
		if want := first + second + 2*int64(i); v.Field(i).Int() != want {
			t.Errorf("%s: %d, want %d", v.Type().Field(i).Name, v.Field(i).Int(), want)
		}
	}
}

// TestSum adds up each count there is, and leaves out other queues.
func TestSum(t *testing.T) {
	t.Parallel()
	one, two, other := filled[pool.QueueStats](100), filled[pool.QueueStats](2000), filled[pool.QueueStats](7)
	one.Name, two.Name, other.Name = "a", "b", "other"
	one.Layout, two.Layout, two.Paused = pool.Zset, pool.Zset, true
	got := shard.Sum("orders", pool.Stats{Queues: []pool.QueueStats{one, other, two}}, []string{"a", "b", "absent"})
	sumOf(t, got, 100, 2000)
	if got.Name != "orders" || got.Layout != pool.Zset || !got.Paused {
		t.Errorf("%+v", got)
	}
}

func TestSumDepths(t *testing.T) {
	t.Parallel()
	one, two, other := filled[pool.QueueDepth](100), filled[pool.QueueDepth](2000), filled[pool.QueueDepth](7)
	one.Name, two.Name, other.Name = "a", "b", "other"
	two.Layout = pool.Zset
	three := pool.QueueDepth{Name: "c", Layout: pool.Zset} // an empty one has no oldest message
	one.Oldest, two.Oldest, other.Oldest = time.Unix(50, 0), time.Unix(40, 0), time.Unix(1, 0)
	got := shard.SumDepths("orders", []pool.QueueDepth{one, other, two, three}, []string{"c", "a", "b"})
	sumOf(t, got, 100, 2000)
	if got.Name != "orders" || got.Layout != pool.Zset || !got.Oldest.Equal(time.Unix(40, 0)) {
		t.Errorf("%+v", got)
	}
}
