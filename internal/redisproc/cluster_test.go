package redisproc_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tagged is a key of slot 12182 by its tag, and slot is that number.
func tagged(i int) string { return fmt.Sprintf("{foo}:%d", i) }

const slot = 12182

func TestClusterMovesASlot(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t, redisproc.ClusterConfig{})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { must(t, client.Close()) })
	const keys = 5
	for i := range keys {
		must(t, client.Set(t.Context(), tagged(i), i, 0).Err())
	}
	old, err := c.Owner(t.Context(), slot)
	must(t, err)
	to, err := c.AnotherMaster(t.Context(), slot)
	must(t, err)
	if old == to || len(c.Nodes()) != 3 {
		t.Fatalf("%d nodes, the slot goes from %s to %s", len(c.Nodes()), old.Addr(), to.Addr())
	}
	stops, unstable := 0, 0
	must(t, c.MoveSlot(t.Context(), slot, to, func() {
		stops++
		err := testredis.Client(t, old.Addr()).MGet(t.Context(), tagged(0), tagged(1), tagged(2), tagged(3), tagged(4)).Err()
		if redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "TRYAGAIN") {
			unstable++
		}
	}))
	if stops != keys+1 || unstable != keys {
		t.Errorf("%d stops on the way, the keys apart or away at %d; want %d and %d", stops, unstable, keys+1, keys)
	}
	if now, err := c.Owner(t.Context(), slot); err != nil || now != to {
		t.Errorf("the slot is with %v, %v", now, err)
	}
	for i := range keys {
		if v, err := client.Get(t.Context(), tagged(i)).Int(); err != nil || v != i {
			t.Errorf("%s: %d, %v", tagged(i), v, err)
		}
	}
	if err := testredis.Client(t, old.Addr()).Get(t.Context(), tagged(0)).Err(); !redis.HasErrorPrefix(err, "MOVED") {
		t.Errorf("the old master says %v, want MOVED", err)
	}
}

func TestClusterFailsOver(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t, redisproc.ClusterConfig{Replicas: true})
	first, err := c.Owner(t.Context(), slot)
	must(t, err)
	replica, err := c.Replica(t.Context(), first)
	must(t, err)
	must(t, c.Failover(t.Context(), slot))
	now, err := c.Owner(t.Context(), slot)
	must(t, err)
	if now != replica || first == replica {
		t.Errorf("the master is %s, want %s", now.Addr(), replica.Addr())
	}
	must(t, c.AwaitWhole(t.Context()))

	must(t, replica.Kill())
	must(t, c.AwaitOwner(t.Context(), slot, first))
	must(t, replica.Restart(t.Context()))
	must(t, c.AwaitWhole(t.Context()))
	if again, err := c.Replica(t.Context(), first); err != nil || again != replica {
		t.Errorf("the killed one came back as %v, %v, want a replica", again, err)
	}
}

func TestSentinelsFailOver(t *testing.T) {
	t.Parallel()
	s := testredis.Sentinels(t, redisproc.SentinelConfig{})
	first, err := s.Master(t.Context())
	must(t, err)
	if first != s.Servers()[0] || len(s.Addrs()) != 3 {
		t.Fatalf("master %s, sentinels %v", first.Addr(), s.Addrs())
	}
	must(t, s.Failover(t.Context()))
	second, err := s.Master(t.Context())
	must(t, err)
	if second != s.Servers()[1] {
		t.Errorf("the master is %s", second.Addr())
	}
	must(t, s.AwaitWhole(t.Context()))

	must(t, second.Kill())
	must(t, s.AwaitOther(t.Context(), second))
	if now, err := s.Master(t.Context()); err != nil || now != first {
		t.Errorf("the master is %v, %v", now, err)
	}
}
