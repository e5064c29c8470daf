package lua

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

func layoutOf(t *testing.T, name string) flow.Layout {
	t.Helper()
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		if layout.String() == name {
			return layout
		}
	}
	t.Fatalf("no layout %q", name)
	return 0
}

// The physical keys of both layouts, with and without a prefix (L, Z, R5).
func TestKeysOfVectors(t *testing.T) {
	t.Parallel()
	for _, v := range loadVectors(t).Keys {
		t.Run(v.Layout+" "+v.Prefix+v.Queue, func(t *testing.T) {
			k, err := NewKeys(layoutOf(t, v.Layout), v.Prefix, v.Queue, "")
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{
				"ready": k.Ready, "processing": k.Processing, "deadlines": k.Deadlines, "delayed": k.Delayed,
				"reserved": k.Reserved, "notify": k.Notify, "dead_letter": k.DeadLetters,
			}
			for name, key := range got {
				if key == "" {
					delete(got, name)
				}
			}
			if diff := cmp.Diff(v.Keys, got); diff != "" {
				t.Errorf("keys differ (-want +got):\n%s", diff)
			}
			if k.Paused != k.Ready+":paused" { // R6
				t.Errorf("paused key is %q", k.Paused)
			}
		})
	}
}

func TestDeadLetterKeysOfVectors(t *testing.T) { // D1
	t.Parallel()
	for _, v := range loadVectors(t).DeadLetterKey {
		k, err := NewKeys(layoutOf(t, v.Layout), "", v.Queue, v.Override)
		if err != nil {
			t.Fatal(err)
		}
		notify := ""
		if v.Notify != nil {
			notify = *v.Notify
		}
		if k.DeadLetters != v.Key || k.DeadLetterNotify != notify {
			t.Errorf("%s %s, override %q: got %q and %q, want %q and %q", v.Layout, v.Queue, v.Override,
				k.DeadLetters, k.DeadLetterNotify, v.Key, notify)
		}
	}
}

func TestQueueNamesRefused(t *testing.T) { // R4
	t.Parallel()
	refused := loadVectors(t).RefusedQueueNames
	if len(refused) < 8 {
		t.Fatalf("the vectors name only %d refused queue names", len(refused))
	}
	for _, name := range refused {
		if err := CheckName(name); !errors.Is(err, ErrQueueName) || !strings.Contains(err.Error(), "R4") {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
		for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
			if _, err := NewKeys(layout, "", name, ""); !errors.Is(err, ErrQueueName) {
				t.Errorf("NewKeys(%s, %q) = %v", layout, name, err)
			}
		}
	}
	// A name ending in .dlq is a queue like any other, and words alone do no harm.
	for _, name := range []string{"orders.dlq", "notify", "processing:orders", "a b", "ünïcode", ":", "orders:"} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil", name, err)
		}
	}
}

func TestPrefixWithWholeHashTagRefused(t *testing.T) { // R3
	t.Parallel()
	for prefix, ok := range map[string]bool{
		"": true, "app:": true, "{": true, "}": true, "{}": true, "}a{": true, "laravel-database-": true,
		"{a}": false, "x{a}y": false, "{{}": false, "{a}{": false,
	} {
		_, err := NewKeys(flow.Legacy, prefix, "orders", "")
		if ok && err != nil || !ok && !errors.Is(err, ErrKeyPrefix) {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}

func TestDeadLetterKeyMayNotBeAKeyOfTheQueue(t *testing.T) { // D1
	t.Parallel()
	for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
		plain, err := NewKeys(layout, "p:", "orders", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range append(plain.own(), plain.Ready+":paused", plain.Ready+":recoveries") {
			if _, err := NewKeys(layout, "p:", "orders", key); !errors.Is(err, ErrDeadLetterKey) {
				t.Errorf("%s: dead letter key %q: %v", layout, key, err)
			}
		}
		// The derived key as an override is the same list, without a token; no prefix goes before it.
		got, err := NewKeys(layout, "p:", "orders", plain.DeadLetters)
		if err != nil || got.DeadLetters != plain.DeadLetters || got.DeadLetterNotify != "" {
			t.Errorf("%s: %+v, %v", layout, got, err)
		}
	}
}

func TestCheckApart(t *testing.T) { // D1
	t.Parallel()
	keys := func(layout flow.Layout, name, dlq string) Keys {
		k, err := NewKeys(layout, "", name, dlq)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for name, c := range map[string]struct {
		all        []Keys
		overridden []bool
		ok         bool
	}{
		"plain": {[]Keys{keys(flow.Legacy, "a", ""), keys(flow.Zset, "a", "")}, []bool{false, false}, true},
		"shared dead letters": {
			[]Keys{keys(flow.Legacy, "a", "dead"), keys(flow.Legacy, "b", "dead")}, []bool{true, true}, true,
		},
		"dead letters consumed by their derived name": {
			[]Keys{keys(flow.Legacy, "a", ""), keys(flow.Legacy, "a.dlq", "")}, []bool{false, false}, true,
		},
		"another queue's ready": {
			[]Keys{keys(flow.Legacy, "a", "b"), keys(flow.Legacy, "b", "")}, []bool{true, false}, false,
		},
		"another queue's reserved, named later": {
			[]Keys{keys(flow.Zset, "b", ""), keys(flow.Legacy, "a", "queues:b:reserved")}, []bool{false, true}, false,
		},
		"another queue's recoveries": {
			[]Keys{keys(flow.Zset, "b", ""), keys(flow.Legacy, "a", "queues:b:recoveries")}, []bool{false, true}, false,
		},
	} {
		err := CheckApart(c.all, c.overridden)
		if c.ok && err != nil || !c.ok && !errors.Is(err, ErrDeadLetterKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSlot(t *testing.T) { // R3, B45; the first values are those of the Redis Cluster specification
	t.Parallel()
	for key, slot := range map[string]int{
		"123456789": 12739, "foo": 12182, "": 0, "bar": 5061,
		"{foo}": 12182, "a{foo}b": 12182, "{foo}{bar}": 12182, "x{foo": Slot("x{foo"),
	} {
		if got := Slot(key); got != slot {
			t.Errorf("Slot(%q) = %d, want %d", key, got, slot)
		}
	}
	for _, pair := range [][2]string{{"{}foo", "{}bar"}, {"{}{foo}", "{}{bar}"}, {"foo{}", "bar{}"}, {"a}foo{", "foo"}} {
		if Slot(pair[0]) == Slot(pair[1]) {
			t.Errorf("%q and %q have no tag in common and must not share a slot but by chance", pair[0], pair[1])
		}
	}
}

// The server computes the same slots.
func TestSlotAsTheServerDoes(t *testing.T) { // R3, B45
	t.Parallel()
	server := testredis.Server(t, redisproc.Config{Args: []string{"--cluster-enabled", "yes"}})
	client := testredis.Client(t, server.URL())
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		key := make([]byte, rnd.IntN(12))
		for i := range key {
			key[i] = "{}{}ab:\x00\xff"[rnd.IntN(9)]
		}
		want, err := client.ClusterKeySlot(t.Context(), string(key)).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := Slot(string(key)); got != int(want) {
			t.Errorf("Slot(%q) = %d, the server says %d", key, got, want)
		}
	}
}

// On a cluster all keys of a queue share one slot or the queue is refused with advice; nothing is tagged
// automatically (R3, B45).
func TestClusterSlotsOfQueueNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"orders": false, "{orders}": true, "a{b}c": true, "{}": false, "a}b{": false, "ünïcode": false,
		"{ünïcode}": true, "{{x}": true, "{}{x}": false,
	} {
		for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
			k, err := NewKeys(layout, "app:", name, "")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(k.Ready, name) {
				t.Errorf("%s: the name %q was changed to %q", layout, name, k.Ready)
			}
			err = k.CheckSlot(name)
			if ok {
				if err != nil {
					t.Errorf("%s %q: %v", layout, name, err)
				}
				for _, key := range append(k.own(), k.DeadLetters) {
					if Slot(key) != Slot(k.Ready) {
						t.Errorf("%s %q: %q is in another slot", layout, name, key)
					}
				}
				continue
			}
			if !errors.Is(err, ErrCrossSlot) || !strings.Contains(err.Error(), "hash tag") {
				t.Errorf("%s %q: %v, want ErrCrossSlot with advice", layout, name, err)
			}
		}
	}
	if Slot("{orders}") == Slot("{invoices}") {
		t.Error("different queues share a slot")
	}
	k, err := NewKeys(flow.Legacy, "", "{orders}", "dead")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.CheckSlot("{orders}"); !errors.Is(err, ErrCrossSlot) || !strings.Contains(err.Error(), `"dead"`) {
		t.Errorf("a dead letter key in another slot: %v (D1)", err)
	}
}
