package publisher_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
)

// TestCluster covers R3: with a hash tag in the queue's name every way to publish works on a cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t, redisproc.Config{Args: []string{"--cluster-enabled", "yes"}})
	direct := testredis.Client(t, server.Addr())
	if err := direct.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, patience, func() bool {
		return strings.Contains(direct.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	}, "the cluster is up")
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, layout := range []publisher.Layout{publisher.Legacy, publisher.Zset} {
		at := newTarget(layout, direct, "app:")
		at.Client, at.Queue = cluster, "{orders}"
		p := at.open(t)
		for _, c := range calls() {
			if c.zset && layout != publisher.Zset {
				continue
			}
			if got, err := c.do(t.Context(), p); got != id || err != nil {
				t.Errorf("%v %s: %q, %v", layout, c.name, got, err)
			}
		}
		for name, pipe := range map[string]redis.Pipeliner{"MULTI": cluster.TxPipeline(), "plain": cluster.Pipeline()} {
			pipe.Set(t.Context(), "own:{orders}", "1", time.Hour)
			if _, err := p.PublishIn(t.Context(), pipe, urn, nil, fixed()...); err != nil {
				t.Fatal(err)
			}
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Errorf("%v: Exec of a %s pipeline: %v", layout, name, err)
			}
		}
		at.count(t, 5)
		if want := body("{orders}", `{}`); direct.LIndex(t.Context(), at.key(), 0).Val() != want {
			t.Errorf("%v: the first message is not %s", layout, want)
		}
	}
}
