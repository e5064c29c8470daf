package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/lua"
)

// RedisConfig configures a Redis. Client is required; the zero value of the others is their default.
type RedisConfig struct {
	// Client is the connection to Redis, of any kind. It is used as it is and never closed. It need not be the one the
	// queues are in.
	Client redis.UniversalClient
	// KeyPrefix goes before every key (R5). Defaults to none.
	KeyPrefix string
	// TTL is how long a message is remembered; it should be longer than a message can be on its way, dead letters and
	// their redrive included. Defaults to 0: for ever, so the keys grow without end.
	TTL time.Duration
}

// Redis is a Store, and Claims, in a Redis that all workers share.
//
// A handled message is the key bq:idemp:<id> with the value 1, as other SDKs of the contract write and read it. A claim is
// bq:claim:<id> (R6) with the holder's token. Each call is one command on one key, so they work on any cluster, whatever the
// ids are. On a server at its memory limit claims go on, while Remember fails.
type Redis struct {
	marks lua.Marks
	ttl   time.Duration
}

// NewRedis makes a Redis. It checks the config (ErrConfig), without talking to the server.
func NewRedis(cfg RedisConfig) (*Redis, error) {
	var problems []error
	if cfg.Client == nil {
		problems = append(problems, errors.New("Client: is not set"))
	}
	if cfg.TTL < 0 {
		problems = append(problems, fmt.Errorf("TTL: %s is negative", cfg.TTL))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrConfig, errors.Join(problems...))
	}
	return &Redis{marks: lua.Marks{Client: cfg.Client, Prefix: cfg.KeyPrefix}, ttl: cfg.TTL}, nil
}

// Seen reports whether a message is remembered.
func (r *Redis) Seen(ctx context.Context, id string) (bool, error) { return r.marks.Seen(ctx, id) }

// Remember notes that a message was handled. One that is remembered keeps its time.
func (r *Redis) Remember(ctx context.Context, id string) error {
	return r.marks.Remember(ctx, id, r.ttl)
}

// Forget takes the note back.
func (r *Redis) Forget(ctx context.Context, id string) error { return r.marks.Forget(ctx, id) }

// Claim takes or extends the claim of a message.
func (r *Redis) Claim(ctx context.Context, id, token string, expiry time.Duration) (bool, error) {
	return r.marks.Claim(ctx, id, token, expiry)
}

// Release ends the claim of a message.
func (r *Redis) Release(ctx context.Context, id, token string) error {
	return r.marks.Unclaim(ctx, id, token)
}
