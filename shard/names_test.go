package shard_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/shard"
)

// TestNamesAreFixed: what stands here is stored in servers and written in other programs.
func TestNamesAreFixed(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{
		1: {8209}, 2: {4129, 356}, 3: {21418, 8209, 16418}, 4: {48576, 1296, 2821, 16248},
		12: {4944, 48576, 3330, 42733, 1296, 4779, 20959, 2821, 8459, 2481, 16248, 506},
	} {
		var all []string
		for _, tag := range want {
			all = append(all, fmt.Sprintf("orders:{%d}", tag))
		}
		if diff := cmp.Diff(all, names(t, n)); diff != "" {
			t.Errorf("%d shards (-want +got):\n%s", n, diff)
		}
	}
}

// TestNoNameChanges is the same for all names of up to 100 shards.
func TestNoNameChanges(t *testing.T) {
	t.Parallel()
	hash := sha256.New()
	for n := 1; n <= 100; n++ {
		hash.Write([]byte(strings.Join(names(t, n), "\n") + "\n"))
	}
	if got, want := hex.EncodeToString(hash.Sum(nil)), "01fdba4cb9a842c1f347522b871807c34e4c8381881466f977e26aa664304eaa"; got != want {
		t.Errorf("the names' hash is %s, want %s", got, want)
	}
}

// TestNamesSpreadEvenly: with equal ranges, as cluster tools deal them out, no master has two shards more than another,
// and each shard's slot is in its own n-th part, in its middle.
func TestNamesSpreadEvenly(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 30, 32, 48, 64, 100, 250, 1024} {
		for i, name := range names(t, n) {
			if slot, want := lua.Slot(name), (2*i+1)*16384/(2*n); slot != want {
				t.Errorf("shard %d of %d, %s: slot %d, want %d", i, n, name, slot, want)
			}
		}
		for _, masters := range []int{3, 4, 5, 6, 12} {
			on := make([]int, masters)
			for _, name := range names(t, n) {
				// As redis-cli does: the ends of the ranges are rounded.
				slot, per := float64(lua.Slot(name)), 16384/float64(masters)
				on[min(int((slot+0.5)/per), masters-1)]++
			}
			fewest, most := n, 0
			for _, shards := range on {
				fewest, most = min(fewest, shards), max(most, shards)
			}
			if most-fewest > 1 || n%masters == 0 && most != fewest {
				t.Errorf("%d shards on %d masters: %v", n, masters, on)
			}
			if n == 12 {
				t.Logf("12 shards on %d masters: %v", masters, on)
			}
		}
	}
}

// TestNamesAreQueues covers R3 and R4: every shard is a queue that a cluster takes, whatever the layout.
func TestNamesAreQueues(t *testing.T) {
	t.Parallel()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}) // never dialled
	t.Cleanup(func() { _ = cluster.Close() })
	for _, name := range names(t, 1024) {
		for _, layout := range layouts {
			cfg := publisher.Config{Client: cluster, Queue: name, Layout: layout, KeyPrefix: "laravel-database-"}
			if _, err := publisher.New(cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestNamesRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queue string
		n     int
		word  string
	}{
		{"", 4, "R4"}, {"{orders}", 4, "R3"}, {"ord{ers", 4, "R3"}, {"orders}", 4, "R3"},
		{"orders", 0, "1 to 1024"}, {"orders", -1, "1 to 1024"}, {"orders", 1025, "1 to 1024"},
	} {
		if _, err := shard.Names(c.queue, c.n); !errors.Is(err, shard.ErrNames) || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%q, %d: %v", c.queue, c.n, err)
		}
	}
}

// TestKeysAreSpread: every shard gets its part of usual keys, and the parts are those of CLUSTER KEYSLOT, which other
// clients compute.
func TestKeysAreSpread(t *testing.T) {
	t.Parallel()
	const keys = 20000
	for _, form := range []string{"%d", "customer-%d", "%08d", "user:%x@example.org"} {
		for _, n := range []int{3, 12, 30} {
			counts := make([]int, n)
			for i := range keys {
				counts[shard.Of(fmt.Sprintf(form, i), n)]++
			}
			for i, got := range counts {
				if want := keys / n; got < want*9/10 || got > want*11/10 {
					t.Errorf("%s: shard %d of %d has %d of %d keys", form, i, n, got, keys)
				}
			}
		}
	}
}

// TestKeyIsThatOfTheCluster compares with Redis itself, and with values that must never change.
func TestKeyIsThatOfTheCluster(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t, redisproc.Config{Args: []string{"--cluster-enabled", "yes"}})
	direct := testredis.Client(t, server.Addr())
	for key, want := range map[string]int{
		"customer-17": 11, "": 0, "ключ": 7, "{tenant-3}:1": 3, "{tenant-3}:2": 3, "a{b}c": 2, "{}x": 7, "x": 11,
	} {
		slot, err := direct.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := shard.Of(key, 12); got != int(slot)*12/16384 || got != want {
			t.Errorf("%q: shard %d, want %d, and by its slot %d it is %d", key, got, want, slot, int(slot)*12/16384)
		}
	}
}
