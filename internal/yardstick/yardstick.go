// Package yardstick is what consumers are measured against: the ceiling, the project's own reserve and settle
// scripts and nothing else; the floor, plain list moves without any promise; and between them list moves by
// scripts. All keep one call for taking and one for removing under way at the same time, as a pool does.
package yardstick

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

const (
	// Batch is the number of messages per call.
	Batch = 256

	ahead    = 4 // batches taken and not yet removed
	budget   = 64 << 20
	migrated = 1000
)

// ErrShort is returned when the queue held fewer messages than it should.
var ErrShort = errors.New("yardstick: fewer messages than there should be")

// Ceiling reserves and acks n messages: no decoding, no handlers, no leases kept.
func Ceiling(ctx context.Context, store lua.Store, n int) error {
	reserved := make(chan *flow.Lease, ahead)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(reserved)
		for left := n; left > 0; {
			got, err := store.Reserve(ctx, flow.ReserveRequest{
				Most: Batch, Bytes: budget, FirstPop: Batch, Migration: migrated,
			})
			if err != nil {
				return err
			}
			if got.Lease == nil {
				return ErrShort
			}
			left -= len(got.Lease.Items)
			reserved <- got.Lease
		}
		return nil
	})
	group.Go(func() error {
		for lease := range reserved {
			settled := make([]flow.Settlement, len(lease.Items))
			for i := range lease.Items {
				settled[i].Reservation = &lease.Items[i]
			}
			if _, err := store.Settle(ctx, settled); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// ListScripts moves n messages through two lists by two scripts, one that takes and one that removes each message by
// its value: a reliable list queue without deadlines, the least a consumer with scripts can do.
func ListScripts(ctx context.Context, client *redis.Client, ready, processing string, n int) error {
	moved := make(chan []string, ahead)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(moved)
		for left := n; left > 0; {
			values, err := listTake.Run(ctx, client, []string{ready, processing}, Batch).StringSlice()
			if err != nil {
				return err
			}
			if len(values) == 0 {
				return ErrShort
			}
			left -= len(values)
			moved <- values
		}
		return nil
	})
	group.Go(func() error {
		for values := range moved {
			words := make([]any, len(values))
			for i := range values {
				words[i] = &values[i]
			}
			if err := listRemove.Run(ctx, client, []string{processing}, words...).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

var (
	listTake = redis.NewScript(`
local values = redis.call('LPOP', KEYS[1], ARGV[1])
if not values then return {} end
redis.call('RPUSH', KEYS[2], unpack(values))
return values`)
	listRemove = redis.NewScript(`
for i = 1, #ARGV do redis.call('LREM', KEYS[1], 1, ARGV[i]) end
return #ARGV`)
)

// Floor moves n messages through two lists with plain commands: take a batch, store it, take it away. No consumer that stores
// what it holds can be faster.
func Floor(ctx context.Context, client *redis.Client, ready, processing string, n int) error {
	moved := make(chan int, ahead)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(moved)
		for left := n; left > 0; {
			values, err := client.LPopCount(ctx, ready, Batch).Result()
			if err != nil {
				return err
			}
			words := make([]any, len(values))
			for i := range values {
				words[i] = &values[i]
			}
			if err := client.RPush(ctx, processing, words...).Err(); err != nil {
				return err
			}
			left -= len(values)
			moved <- len(values)
		}
		return nil
	})
	group.Go(func() error {
		for n := range moved {
			if err := client.LPopCount(ctx, processing, n).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}
