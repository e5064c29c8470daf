package redrive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

// Layout is how the queue lies in Redis.
type Layout = flow.Layout

// The layouts of the contract.
const (
	Legacy = flow.Legacy
	Zset   = flow.Zset
)

// Config says whose dead letters are meant. Client and Queue are required.
type Config struct {
	// Client is used as it is, and never closed. A redis.Ring is refused.
	Client redis.UniversalClient
	// Queue is the logical name of the queue whose messages failed (R4).
	Queue string
	// Layout is the queue's layout. Defaults to Legacy.
	Layout Layout
	// KeyPrefix goes before every key. Defaults to none.
	KeyPrefix string
	// DeadLetterKey is the physical key, where a pool sets one (D1). Defaults to the layout's.
	DeadLetterKey string
}

// DeadLetters are the dead letters of one queue. Safe for concurrent use.
type DeadLetters struct {
	cfg  Config
	keys lua.Keys
	list *lua.List
}

// Open checks the config. It sends nothing.
func Open(cfg Config) (*DeadLetters, error) {
	if cfg.Client == nil {
		return nil, fmt.Errorf("%w: Client: is required", ErrConfig)
	}
	if _, ring := cfg.Client.(*redis.Ring); ring {
		return nil, fmt.Errorf("%w: Client: a *redis.Ring spreads the keys of one queue over servers; use a client of the server in question", ErrConfig)
	}
	if cfg.Layout == 0 {
		cfg.Layout = Legacy
	}
	keys, err := lua.NewKeys(cfg.Layout, cfg.KeyPrefix, cfg.Queue, cfg.DeadLetterKey)
	if err == nil {
		if _, cluster := cfg.Client.(*redis.ClusterClient); cluster {
			err = keys.CheckSlot(cfg.Queue)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: Queue, KeyPrefix or DeadLetterKey: %w", ErrConfig, err)
	}
	return &DeadLetters{cfg: cfg, keys: keys, list: lua.DeadLetters(cfg.Client, keys)}, nil
}

// Letter is one dead letter.
type Letter struct {
	// Raw is the record as it is stored.
	Raw string
	// ID, URN and Queue are the message's meta.id, URN and meta.queue; empty when Raw is no acceptable envelope.
	ID, URN, Queue string
	// Why is the dead_letter block; zero when there is none, as in what was never one JSON object.
	Why envelope.DeadLetter
	// Bad says why Raw is no acceptable envelope (E3); nil when it is one.
	Bad error
}

// Age is how long ago the message was given up; 0 when the record does not say.
func (l *Letter) Age(now time.Time) time.Duration {
	if l.Why.FailedAt <= 0 {
		return 0
	}
	return max(0, now.Sub(time.UnixMilli(l.Why.FailedAt)))
}

func read(raw string) Letter {
	l := Letter{Raw: raw}
	l.Why, _ = envelope.ReadDeadLetter(raw)
	env, err := envelope.Decode(raw)
	if err != nil {
		l.Bad = err
		return l
	}
	l.ID, l.URN, l.Queue = env.Meta.ID, env.URN, env.Meta.Queue
	return l
}

// window is how many records are read at a time.
const window = lua.MostTaken

// errEnough ends a walk.
var errEnough = errors.New("redrive: enough")

// walk shows visit the records that are there now, a window at a time, oldest first. visit returns how many of the
// window are gone now, because it has removed them or somebody else has. Where others remove records between two windows,
// as many are passed over and stay; the next walk sees them.
func (d *DeadLetters) walk(ctx context.Context, visit func(letters []Letter) (gone int, err error)) error {
	left, err := d.list.Len(ctx)
	at := int64(0)
	for err == nil && left > 0 {
		var raws []string
		if raws, err = d.list.Range(ctx, at, min(left, window)); err != nil || len(raws) == 0 {
			break
		}
		letters := make([]Letter, len(raws))
		for i, raw := range raws {
			letters[i] = read(raw)
		}
		var gone int
		gone, err = visit(letters)
		at += int64(len(raws) - gone)
		left -= int64(len(raws))
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// List shows visit the dead letters that match, oldest first, until it returns false. It changes nothing.
func (d *DeadLetters) List(ctx context.Context, f Filter, visit func(l Letter) bool) error {
	now := time.Now()
	return d.walk(ctx, func(letters []Letter) (int, error) {
		for i := range letters {
			if f.matches(&letters[i], now) && !visit(letters[i]) {
				return 0, errEnough
			}
		}
		return 0, nil
	})
}

// Len is how many dead letters there are.
func (d *DeadLetters) Len(ctx context.Context) (int64, error) { return d.list.Len(ctx) }

// Purge removes the dead letters that match, the oldest first, at most limit of them; 0 means all. It returns how many it
// removed, also beside an error.
func (d *DeadLetters) Purge(ctx context.Context, f Filter, limit int64) (purged int64, err error) {
	now := time.Now()
	err = d.walk(ctx, func(letters []Letter) (int, error) {
		var records []string
		for i := range letters {
			if f.matches(&letters[i], now) && (limit == 0 || purged+int64(len(records)) < limit) {
				records = append(records, letters[i].Raw)
			}
		}
		if len(records) > 0 {
			there, err := d.list.Take(ctx, nil, records, nil)
			if err != nil {
				return 0, err
			}
			for _, ok := range there {
				if ok {
					purged++
				}
			}
		}
		if limit > 0 && purged >= limit {
			return len(records), errEnough
		}
		return len(records), nil
	})
	return purged, err
}
