package publisher_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/publisher"
)

// vectors is the part of the project's test data that concerns this package.
type vectors struct {
	Keys []struct {
		Layout, Queue, Prefix string
		Keys                  struct{ Ready, Notify string }
	}
	RefusedQueueNames []string `json:"refused_queue_names"`
	DelayedScore      []struct {
		Now   json.Number
		Delay float64 `json:"delay_seconds"`
		Score float64
	} `json:"delayed_score"`
	Frame []struct {
		Body, Stored string
		Headers      map[string]string
	}
}

func loadVectors(t *testing.T) vectors {
	t.Helper()
	text, err := os.ReadFile("../testdata/redis.json")
	if err != nil {
		t.Fatalf("the project's vectors are missing: %v", err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Keys) == 0 || len(v.RefusedQueueNames) == 0 || len(v.DelayedScore) == 0 || len(v.Frame) == 0 {
		t.Fatal("the project's vectors lack a section")
	}
	return v
}

func layoutOf(name string) publisher.Layout {
	if name == publisher.Zset.String() {
		return publisher.Zset
	}
	return publisher.Legacy
}

// TestKeys covers L, Z and R5 as far as a producer meets them.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range loadVectors(t).Keys {
		t.Run(c.Layout+" "+c.Prefix+c.Queue, func(t *testing.T) {
			t.Parallel()
			client := testredis.Client(t, testredis.Mini(t).Addr())
			p, err := publisher.New(publisher.Config{
				Client: client, Queue: c.Queue, Layout: layoutOf(c.Layout), KeyPrefix: c.Prefix,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Publish(t.Context(), urn, nil, fixed()...); err != nil {
				t.Fatal(err)
			}
			if got := client.LRange(t.Context(), c.Keys.Ready, 0, -1).Val(); len(got) != 1 || got[0] != body(c.Queue, `{}`) {
				t.Errorf("%s holds %q", c.Keys.Ready, got)
			}
			want := int64(1)
			if c.Keys.Notify != "" {
				want++
			}
			if got := client.DBSize(t.Context()).Val(); got != want {
				t.Errorf("%d keys written, want %d", got, want)
			}
		})
	}
}

func TestRefusedConfigs(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "localhost:1"})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "localhost:1"}, HeartbeatFrequency: time.Hour})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:1"}})
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), ring.Close(), cluster.Close()); err != nil {
			t.Error(err)
		}
	})
	type config = publisher.Config
	type refused struct {
		config config
		is     error
		says   []string
	}
	cases := map[string]refused{
		"nothing set":      {config{}, lua.ErrQueueName, []string{"Client: is not set", "Queue: "}},
		"everything wrong": {config{Layout: 7, KeyPrefix: "{a}"}, lua.ErrKeyPrefix, []string{"Client: ", "Queue: ", "Layout: ", "KeyPrefix: "}},
		"unknown layout":   {config{Client: client, Queue: "q", Layout: 9}, nil, []string{"Layout: unknown layout 9"}},
		"tag in prefix":    {config{Client: client, Queue: "q", KeyPrefix: "a{b}:"}, lua.ErrKeyPrefix, []string{"KeyPrefix: ", "{b}"}},
		"ring":             {config{Client: ring, Queue: "{q}"}, nil, []string{"Client: ", "redis.Ring", "cluster", "{orders}"}},
		"cluster legacy":   {config{Client: cluster, Queue: "orders"}, lua.ErrCrossSlot, []string{"Queue: ", "{orders}"}},
		"cluster zset":     {config{Client: cluster, Queue: "orders", Layout: publisher.Zset}, lua.ErrCrossSlot, []string{"Queue: ", "{orders}"}},
		"cluster open tag": {config{Client: cluster, Queue: "{orders"}, lua.ErrCrossSlot, []string{"{orders}"}},
	}
	for _, name := range loadVectors(t).RefusedQueueNames {
		cases["name "+name] = refused{config{Client: client, Queue: name}, lua.ErrQueueName, []string{"Queue: ", "R4"}}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := publisher.New(c.config)
			if p != nil || !errors.Is(err, publisher.ErrConfig) {
				t.Fatalf("New: %v, %v", p, err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v, want %v", err, c.is)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
	for name, c := range map[string]config{
		"cluster with a tag":            {Client: cluster, Queue: "{orders}"},
		"cluster with a tag and prefix": {Client: cluster, Queue: "{orders}", Layout: publisher.Zset, KeyPrefix: "app:"},
		"queue of dead letters":         {Client: client, Queue: "orders.dlq"},
		"no tag on one server":          {Client: client, Queue: "orders", Layout: publisher.Zset},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := publisher.New(c); err != nil {
				t.Error(err)
			}
		})
	}
}
