package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/publisher"
)

// Config says where a Publisher publishes to. What publisher.Config requires and Shards are required.
type Config struct {
	// Config is that of the shards. Queue is the name of the queue that they make up together, without a hash tag.
	publisher.Config

	// Shards is their number, from 1 to 1,024. All publishers and consumers of the queue must agree on it; see
	// docs/scaling.md for how to change it.
	Shards int

	// Key gives the key by which a message is put in a shard, as Of says; an empty one lets the message go in turn.
	// The message holds what the caller gave: ID and TraceID are empty where they will be generated; Data is what
	// the call was given, and a json.RawMessage in PublishEnvelope. It is called by several goroutines at once, and once
	// per message. Defaults to nil: all messages go in turn.
	Key func(m publisher.Message) string
}

// check finds the names. All problems are reported, as by publisher.New.
func (c *Config) check() ([]string, error) {
	var problems []error
	names, err := Names(c.Queue, c.Shards)
	if err != nil {
		problems = append(problems, fmt.Errorf("%w: Queue or Shards: %w", publisher.ErrConfig, err))
	}
	if strings.Contains(c.KeyPrefix, "{") {
		problems = append(problems, fmt.Errorf("%w: KeyPrefix: the brace in %q would take the place of the shards' hash tags (R3)",
			publisher.ErrConfig, c.KeyPrefix))
	}
	rest := c.Config
	rest.Queue = "any:{0}" // the rest of the config is looked at whatever the name
	if _, err := publisher.New(rest); err != nil {
		problems = append(problems, err)
	}
	return names, errors.Join(problems...)
}

// Publisher publishes to the shards of one queue. It has the methods of publisher.Publisher, each of which gives the
// message to one shard's and returns what that returns: the classes of errors mean the same. It is safe for concurrent
// use, holds no connection of its own and needs no closing.
//
// Messages without a key go to one shard after the other, from a random one on. A message is never put in another shard
// because its own cannot take it: a publish that failed tells so. A caller that repeats it with the same id goes on to the
// next shard, or with a key to the same.
type Publisher struct {
	names  []string
	shards []*publisher.Publisher
	key    func(publisher.Message) string
	turn   atomic.Uint64 // of the next message without a key
}

// New makes a Publisher. It checks the config (publisher.ErrConfig), without talking to Redis.
func New(cfg Config) (*Publisher, error) {
	names, err := cfg.check()
	if err != nil {
		return nil, err
	}
	p := &Publisher{names: names, key: cfg.Key}
	for _, name := range names {
		one := cfg.Config
		one.Queue = name
		shard, err := publisher.New(one)
		if err != nil {
			return nil, err
		}
		p.shards = append(p.shards, shard)
	}
	p.turn.Store(rand.Uint64N(uint64(len(names)))) // so that processes that start together do not go in step
	return p, nil
}

// Names are the names of the shards.
func (p *Publisher) Names() []string { return slices.Clone(p.names) }

// For is the publisher of the key's shard, where the key is none that Config.Key could find in the message.
func (p *Publisher) For(key string) *publisher.Publisher { return p.shards[Of(key, len(p.shards))] }

// CarriesHeaders is that of publisher.Publisher, for all shards.
func (p *Publisher) CarriesHeaders() bool { return p.shards[0].CarriesHeaders() }

// Publish is that of publisher.Publisher, in the message's shard.
func (p *Publisher) Publish(ctx context.Context, urn string, data any, opts ...publisher.Option) (string, error) {
	return p.choose(urn, data, nil, opts).Publish(ctx, urn, data, opts...)
}

// PublishDelayed is that of publisher.Publisher, in the message's shard.
func (p *Publisher) PublishDelayed(
	ctx context.Context, delay time.Duration, urn string, data any, opts ...publisher.Option,
) (string, error) {
	return p.choose(urn, data, nil, opts).PublishDelayed(ctx, delay, urn, data, opts...)
}

// PublishWithHeaders is that of publisher.Publisher, in the message's shard. In the zset layout each shard says once that
// it stores none (F4).
func (p *Publisher) PublishWithHeaders(
	ctx context.Context, headers map[string]string, urn string, data any, opts ...publisher.Option,
) (string, error) {
	return p.choose(urn, data, headers, opts).PublishWithHeaders(ctx, headers, urn, data, opts...)
}

// PublishIn is that of publisher.Publisher, in the message's shard. A transaction on a cluster has one slot: its other
// keys need the hash tag of that shard, which takes a key, and For.
func (p *Publisher) PublishIn(
	ctx context.Context, pipe redis.Pipeliner, urn string, data any, opts ...publisher.Option,
) (string, error) {
	return p.choose(urn, data, nil, opts).PublishIn(ctx, pipe, urn, data, opts...)
}

// PublishEnvelope is that of publisher.Publisher, in the message's shard. meta.queue stays as it is.
func (p *Publisher) PublishEnvelope(ctx context.Context, e envelope.Envelope) error {
	var m publisher.Message
	if p.key != nil {
		m = publisher.Message{URN: e.URN, Data: json.RawMessage(e.Data), ID: e.Meta.ID, TraceID: e.TraceID}
	}
	return p.shards[p.place(m)].PublishEnvelope(ctx, e)
}

// choose is the shard of a message that is given with options.
func (p *Publisher) choose(urn string, data any, headers map[string]string, opts []publisher.Option) *publisher.Publisher {
	m := publisher.Message{URN: urn, Data: data, Headers: headers}
	if p.key != nil && len(opts) > 0 {
		var e envelope.Envelope
		for _, opt := range opts {
			opt(&e)
		}
		m.ID, m.TraceID = e.Meta.ID, e.TraceID
	}
	return p.shards[p.place(m)]
}

// place is the shard of a message.
func (p *Publisher) place(m publisher.Message) int {
	if key := p.keyOf(m); key != "" {
		return Of(key, len(p.shards))
	}
	return p.next()
}

func (p *Publisher) keyOf(m publisher.Message) string {
	if p.key == nil {
		return ""
	}
	return p.key(m)
}

// next is the shard whose turn it is.
func (p *Publisher) next() int { return int(p.turn.Add(1) % uint64(len(p.shards))) } // #nosec G115 -- below 1,024
