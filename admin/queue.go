package admin

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

// Layout is how a queue lies in Redis.
type Layout = flow.Layout

// The layouts of the contract.
const (
	Legacy = flow.Legacy
	Zset   = flow.Zset
)

// ErrOptions is returned when names or options cannot work, or contradict each other. Nothing was changed.
var ErrOptions = errors.New("admin: options")

// Queue names a queue. Only Name is required.
type Queue struct {
	// Name is the logical name (R4).
	Name string
	// Layout defaults to Legacy.
	Layout Layout
	// KeyPrefix goes before every key. Defaults to none.
	KeyPrefix string
	// DeadLetterKey is the physical key, where a pool sets one (D1). Defaults to the layout's.
	DeadLetterKey string
}

// keys are the queue's keys; it fills in the default layout.
func (q *Queue) keys(client redis.UniversalClient) (lua.Keys, error) {
	if q.Layout == 0 {
		q.Layout = Legacy
	}
	keys, err := lua.NewKeys(q.Layout, q.KeyPrefix, q.Name, q.DeadLetterKey)
	if _, cluster := client.(*redis.ClusterClient); cluster && err == nil {
		err = keys.CheckSlot(q.Name)
	}
	if err != nil {
		return lua.Keys{}, fmt.Errorf("%w: queue %q: %w", ErrOptions, q.Name, err)
	}
	return keys, nil
}
