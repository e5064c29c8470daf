package publisher

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

// Layout is how the queue lies in Redis. Producers and consumers of a queue must agree on it.
type Layout = flow.Layout

// The layouts of the contract.
const (
	Legacy = flow.Legacy // a list; the default (rules L)
	Zset   = flow.Zset   // compatible with Laravel's queue: a list with delayed messages and wake-up tokens (rules Z)
)

// Config says where a Publisher publishes to. Client and Queue are required.
type Config struct {
	// Client is the caller's connection to Redis: a single server, a cluster or a Sentinel client. It is used as
	// it is and never closed. A redis.Ring is refused.
	Client redis.UniversalClient

	// Queue is the logical name, which also goes into meta.queue. It is not a Redis key and has no prefix
	// (R4). On a cluster it needs a hash tag, such as {orders} (R3).
	Queue string

	// Layout is the queue's layout. Defaults to Legacy.
	Layout Layout

	// KeyPrefix goes before every Redis key, in both layouts (R5); a stock Laravel application has one such as
	// "laravel-database-". Defaults to none.
	KeyPrefix string

	// Logger gets the one thing a Publisher has to say: that headers are dropped in the zset layout (F4).
	// Defaults to slog.Default().
	Logger *slog.Logger
}

// keys validates the config and derives the queue's keys. All problems are reported, each with its field.
func (c *Config) keys() (lua.Keys, error) {
	var problems []error
	report := func(field string, err error) {
		problems = append(problems, fmt.Errorf("%s: %w", field, err))
	}
	switch c.Client.(type) {
	case nil:
		report("Client", errors.New("is not set"))
	case *redis.Ring:
		report("Client", errors.New("a redis.Ring spreads the keys of a queue over servers that know nothing of each "+
			"other; use a cluster, with a hash tag in the queue's name such as {orders} (R3)"))
	}
	if c.Layout > Zset {
		report("Layout", fmt.Errorf("unknown layout %d", c.Layout))
	}
	name := c.Queue
	if err := lua.CheckName(name); err != nil {
		report("Queue", err)
		name = "any" // so that the prefix is looked at as well
	}
	keys, err := lua.NewKeys(c.Layout, c.KeyPrefix, name, "")
	if err != nil {
		report("KeyPrefix", err)
	} else if _, ok := c.Client.(*redis.ClusterClient); ok && name == c.Queue {
		if err := keys.CheckSlot(name); err != nil {
			report("Queue", err)
		}
	}
	if len(problems) > 0 {
		return lua.Keys{}, fmt.Errorf("%w: %w", ErrConfig, errors.Join(problems...))
	}
	return keys, nil
}
