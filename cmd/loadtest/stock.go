package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/pool"
)

const (
	stockPatience = 15 * time.Second // how long a server may be away at the end
	stockPage     = 1000             // values read at a time
	stockBytes    = 4 << 20          // of them
)

// takeStock reads every key of the queue that holds messages and enters what lies there. It runs when the
// pool has stopped, so nothing moves. It is not hindered by an interrupt.
//
// The legacy layout's deadlines are not read. A deadline whose value has left processing is no message: a
// sweep drops it, so a message that stands in no other key is lost.
func (t *trial) takeStock(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	lists := map[string]mark{t.keys.Ready: inReady, t.keys.DeadLetters: inDeadLetters}
	sets := map[string]mark{}
	if t.cfg.layout == pool.Zset {
		sets[t.keys.Reserved], sets[t.keys.Delayed] = inFlight, inDelayed
	} else {
		lists[t.keys.Processing] = inFlight
	}
	for key, place := range lists {
		if err := t.takeStockOf(ctx, key, place, t.srv.client.LRange); err != nil {
			return err
		}
	}
	for key, place := range sets {
		if err := t.takeStockOf(ctx, key, place, t.srv.client.ZRange); err != nil {
			return err
		}
	}
	return nil
}

// takeStockOf reads one key in pages.
func (t *trial) takeStockOf(
	ctx context.Context, key string, place mark, read func(context.Context, string, int64, int64) *redis.StringSliceCmd,
) error {
	page := int64(max(1, min(stockPage, stockBytes/t.cfg.payload)))
	for from := int64(0); ; from += page {
		var values []string
		err := persist(ctx, func() (err error) {
			values, err = read(ctx, key, from, from+page-1).Result()
			return err
		})
		if err != nil {
			return err
		}
		for _, value := range values {
			t.books.found(t.mint.read(value), place)
		}
		if int64(len(values)) < page {
			return nil
		}
	}
}

// persist repeats what has no effect or always the same one, while the server is away, for stockPatience at
// most.
func persist(ctx context.Context, try func() error) error {
	patience, cancel := context.WithTimeout(ctx, stockPatience)
	defer cancel()
	again := retry.New()
	for {
		err := try()
		if err == nil || again.Wait(patience) != nil {
			return err
		}
	}
}
