package redrive_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/redrive"
)

// Between slots of a cluster a message is published and then removed; within one slot both in one step.
func TestBetweenSlots(t *testing.T) { // R3
	t.Parallel()
	cluster := testredis.Cluster(t, redisproc.ClusterConfig{})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	for _, layout := range []redrive.Layout{redrive.Legacy, redrive.Zset} {
		r := &rig{t: t, layout: layout}
		dead, err := redrive.Open(redrive.Config{Client: client, Queue: "{orders}", Layout: layout})
		if err != nil {
			t.Fatal(err)
		}
		for i, queue := range []string{"{orders}", "{invoices}"} {
			if err := client.RPush(t.Context(), r.ready("{orders}")+".dlq", record(i, failed(queue))).Err(); err != nil {
				t.Fatal(err)
			}
		}
		report, err := dead.Redrive(t.Context(), redrive.Filter{}, redrive.Options{})
		if err != nil || report.Moved != 2 {
			t.Fatalf("%+v, %v", report, err)
		}
		for i, queue := range []string{"{orders}", "{invoices}"} {
			same(t, queue, client.LRange(t.Context(), r.ready(queue), 0, -1).Val(), []string{body(i, 0)})
		}
		if n, err := dead.Len(t.Context()); err != nil || n != 0 {
			t.Errorf("%d left, %v", n, err)
		}
	}
}
