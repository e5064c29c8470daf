package shard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/shard"
)

// common is what a program that can use either publisher calls.
type common interface {
	Publish(ctx context.Context, urn string, data any, opts ...publisher.Option) (string, error)
	PublishDelayed(ctx context.Context, delay time.Duration, urn string, data any, opts ...publisher.Option) (string, error)
	PublishWithHeaders(ctx context.Context, headers map[string]string, urn string, data any, opts ...publisher.Option) (string, error)
	PublishBatch(ctx context.Context, messages []publisher.Message) ([]publisher.Result, error)
	PublishIn(ctx context.Context, pipe redis.Pipeliner, urn string, data any, opts ...publisher.Option) (string, error)
	PublishEnvelope(ctx context.Context, e envelope.Envelope) error
	PublishRaw(ctx context.Context, texts []string) (stored int, err error)
}

// Either publisher can be swapped for the other.
var _, _ common = (*publisher.Publisher)(nil), (*shard.Publisher)(nil)

// call is one way to publish a message with an id, a trace id and data.
type call struct {
	name    string
	delayed bool // the zset layout's alone
	do      func(ctx context.Context, p common, id, trace string, data any) (string, error)
}

func calls(client *redis.Client) []call {
	opts := func(id, trace string) []publisher.Option {
		return []publisher.Option{publisher.WithID(id), publisher.WithTraceID(trace)}
	}
	return []call{
		{"Publish", false, func(ctx context.Context, p common, id, trace string, data any) (string, error) {
			return p.Publish(ctx, urn, data, opts(id, trace)...)
		}},
		{"PublishWithHeaders", false, func(ctx context.Context, p common, id, trace string, data any) (string, error) {
			return p.PublishWithHeaders(ctx, map[string]string{"k": "v"}, urn, data, opts(id, trace)...)
		}},
		{"PublishDelayed", true, func(ctx context.Context, p common, id, trace string, data any) (string, error) {
			return p.PublishDelayed(ctx, time.Hour, urn, data, opts(id, trace)...)
		}},
		{"PublishBatch", false, func(ctx context.Context, p common, id, trace string, data any) (string, error) {
			results, err := p.PublishBatch(ctx, []publisher.Message{{URN: urn, Data: data, ID: id, TraceID: trace}})
			return results[0].ID, err
		}},
		{"PublishIn", false, func(ctx context.Context, p common, id, trace string, data any) (string, error) {
			pipe := client.TxPipeline()
			got, err := p.PublishIn(ctx, pipe, urn, data, opts(id, trace)...)
			if err == nil {
				_, err = pipe.Exec(ctx)
			}
			return got, err
		}},
		{"PublishEnvelope", false, func(ctx context.Context, p common, id, trace string, data any) (string, error) {
			e, err := envelope.New(urn, "elsewhere", data, opts(id, trace)...)
			if err != nil {
				return "", err
			}
			return id, p.PublishEnvelope(ctx, e)
		}},
	}
}

// counts are how many messages each shard holds, ready and delayed.
func (at target) counts(t *testing.T) [shards]int64 {
	t.Helper()
	var all [shards]int64
	for i, name := range names(t, shards) {
		all[i] = at.direct.LLen(t.Context(), at.keyOf(name)).Val() + at.direct.ZCard(t.Context(), at.keyOf(name)+":delayed").Val()
	}
	return all
}

// eachCall runs fn for every way to publish, in both layouts, on both servers.
func eachCall(t *testing.T, fn func(t *testing.T, at target, c call)) {
	t.Helper()
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		for _, c := range calls(at.direct) {
			if c.delayed && at.Layout != publisher.Zset {
				continue
			}
			fresh := at
			fresh.KeyPrefix += c.name + ":"
			t.Run(c.name, func(t *testing.T) { fn(t, fresh, c) })
		}
	})
}

// TestInTurn: without a key every shard gets the same.
func TestInTurn(t *testing.T) {
	eachCall(t, func(t *testing.T, at target, c call) {
		p := at.open(t)
		for i := range 3 * shards {
			id := fmt.Sprint("id-", i)
			if got, err := c.do(t.Context(), p, id, "trace", map[string]int{"n": i}); err != nil || got != id {
				t.Fatal(got, err)
			}
		}
		if diff := cmp.Diff([shards]int64{3, 3, 3, 3}, at.counts(t)); diff != "" {
			t.Errorf("messages in each shard (-want +got):\n%s", diff)
		}
	})
}

// TestByKey: the key alone decides, whatever in the message it is made of, and an empty one is none.
func TestByKey(t *testing.T) {
	eachCall(t, func(t *testing.T, at target, c call) {
		for i, key := range []struct {
			from string
			of   func(m publisher.Message) string
		}{
			{"ID", func(m publisher.Message) string { return m.ID }},
			{"TraceID", func(m publisher.Message) string { return m.TraceID }},
			{"URN", func(m publisher.Message) string { return m.URN }},
			{"Data", func(m publisher.Message) string {
				if raw, ok := m.Data.(json.RawMessage); ok { // of an envelope
					var data map[string]string
					_ = json.Unmarshal(raw, &data) // it was one
					return data["customer"]
				}
				return m.Data.(map[string]string)["customer"]
			}},
		} {
			at := at
			at.KeyPrefix += key.from + ":"
			at.Key = key.of
			p := at.open(t)
			place := i % shards
			word := keyFor(place)
			if key.from == "URN" {
				place = shard.Of(urn, shards)
			}
			for range 3 {
				if _, err := c.do(t.Context(), p, word, word, map[string]string{"customer": word, "nonce": fmt.Sprint(time.Now())}); err != nil {
					t.Fatal(err)
				}
			}
			want := [shards]int64{}
			want[place] = 3
			if diff := cmp.Diff(want, at.counts(t)); diff != "" {
				t.Errorf("by %s, messages in each shard (-want +got):\n%s", key.from, diff)
			}
		}
	})
}

func TestEmptyKeyGoesInTurn(t *testing.T) {
	eachCall(t, func(t *testing.T, at target, c call) {
		at.Key = func(publisher.Message) string { return "" }
		p := at.open(t)
		for i := range 2 * shards {
			if _, err := c.do(t.Context(), p, fmt.Sprint(i), "trace", map[string]int{"n": i}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([shards]int64{2, 2, 2, 2}, at.counts(t)); diff != "" {
			t.Errorf("messages in each shard (-want +got):\n%s", diff)
		}
	})
}

// TestFor: the key is the caller's own, and the publisher that of the one queue.
func TestFor(t *testing.T) {
	eachCall(t, func(t *testing.T, at target, c call) {
		p := at.open(t)
		if _, err := c.do(t.Context(), p.For(keyFor(2)), "id", "trace", nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([shards]int64{2: 1}, at.counts(t)); diff != "" {
			t.Errorf("messages in each shard (-want +got):\n%s", diff)
		}
	})
}

// TestMessagesNameTheirShard: what a redrive goes by.
func TestMessagesNameTheirShard(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		p := at.open(t)
		for range shards {
			if _, err := p.PublishWithHeaders(t.Context(), map[string]string{"k": "v"}, urn, nil); err != nil {
				t.Fatal(err)
			}
		}
		for i, ids := range at.stored(t) { // which looks at the name
			if len(ids) != 1 {
				t.Errorf("shard %d holds %d messages", i, len(ids))
			}
		}
	})
}

// TestClassesOfErrors: they come through as they are, and name the shard.
func TestClassesOfErrors(t *testing.T) {
	eachCall(t, func(t *testing.T, at target, c call) {
		p := at.open(t)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.do(ended, p, "id", "trace", nil); c.name != "PublishIn" && !errors.Is(err, publisher.ErrNotSent) {
			t.Errorf("an ended context: %v", err)
		}
		if _, err := c.do(t.Context(), p, "id", "trace", 7); !errors.Is(err, publisher.ErrEncode) && !errors.Is(err, envelope.ErrDataNotObject) {
			t.Errorf("a number for data: %v", err)
		}
		for _, name := range names(t, shards) {
			for _, key := range []string{at.keyOf(name), at.keyOf(name) + ":delayed"} {
				if err := at.direct.Set(t.Context(), key, "somebody else's", 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		at.Key = func(publisher.Message) string { return keyFor(1) }
		_, err := c.do(t.Context(), at.open(t), "id", "trace", nil)
		if c.name == "PublishIn" { // Exec's error is Redis's own
			return
		}
		if !errors.Is(err, publisher.ErrRefused) || !strings.Contains(err.Error(), names(t, shards)[1]) {
			t.Errorf("a key of another type: %v", err)
		}
	})
}

func TestDelayNeedsZset(t *testing.T) {
	t.Parallel()
	p := target{Config: shard.Config{Config: publisher.Config{Client: testredis.Client(t, "127.0.0.1:1"), Queue: "orders"}, Shards: 2}}.open(t)
	if _, err := p.PublishDelayed(t.Context(), time.Second, urn, nil); !errors.Is(err, publisher.ErrNoDelay) {
		t.Error(err)
	}
}

// TestStartsAnywhere: publishers that are made together must not go in step.
func TestStartsAnywhere(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	at := target{Config: shard.Config{Config: publisher.Config{Client: testredis.Client(t, mini.Addr()), Queue: "orders"}, Shards: shards}}
	at.direct = testredis.Client(t, mini.Addr())
	for range 200 {
		if _, err := at.open(t).Publish(t.Context(), urn, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range at.counts(t) {
		if n < 20 { // 50 are expected; fewer than 20 come once in 10⁶ runs
			t.Errorf("shard %d was the first of %d among 200", i, n)
		}
	}
}

// TestConfigRefused names every field at fault, as publisher.New does.
func TestConfigRefused(t *testing.T) {
	t.Parallel()
	client := testredis.Client(t, "127.0.0.1:1")
	for _, c := range []struct {
		name  string
		cfg   shard.Config
		words []string
	}{
		{"all", shard.Config{Config: publisher.Config{KeyPrefix: "a{", Layout: 9}}, []string{"Queue or Shards", "KeyPrefix", "Client", "Layout"}},
		{"no number", shard.Config{Config: publisher.Config{Client: client, Queue: "orders"}}, []string{"Shards"}},
		{"a tag", shard.Config{Config: publisher.Config{Client: client, Queue: "{orders}"}, Shards: 4}, []string{"Queue"}},
		{"an open brace", shard.Config{Config: publisher.Config{Client: client, Queue: "orders", KeyPrefix: "app{"}, Shards: 4}, []string{"KeyPrefix"}},
		{"a whole tag", shard.Config{Config: publisher.Config{Client: client, Queue: "orders", KeyPrefix: "{app}"}, Shards: 4}, []string{"KeyPrefix"}},
	} {
		_, err := shard.New(c.cfg)
		if !errors.Is(err, publisher.ErrConfig) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, word := range c.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v does not name %s", c.name, err, word)
			}
		}
	}
}

// TestByHeader is by key where that is a header.
func TestByHeader(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ testredis.Backend, at target) {
		at.Key = func(m publisher.Message) string { return m.Headers["tenant"] }
		p, headers := at.open(t), map[string]string{"tenant": keyFor(3)}
		if _, err := p.PublishWithHeaders(t.Context(), headers, urn, nil); err != nil {
			t.Error(err)
		}
		if _, err := p.PublishBatch(t.Context(), []publisher.Message{{URN: urn, Headers: headers}}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([shards]int64{3: 2}, at.counts(t)); diff != "" {
			t.Errorf("messages in each shard (-want +got):\n%s", diff)
		}
	})
}
