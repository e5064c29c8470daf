package lua

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// depth counts what a queue holds, in one pipeline that takes the same time whatever there is: lengths, and the head of
// ready. ask adds a layout's own commands, tell reads their replies.
func (b *base) depth(ctx context.Context, ask func(p redis.Pipeliner), tell func(d *flow.Depth)) (flow.Depth, error) {
	var ready, dead *redis.IntCmd
	var head *redis.StringCmd
	_, err := b.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		ready, dead = p.LLen(ctx, b.Keys.Ready), p.LLen(ctx, b.Keys.DeadLetters)
		ask(p)
		head = p.LIndex(ctx, b.Keys.Ready, 0) // the last: its "nothing there" comes only when no other has failed
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return flow.Depth{}, classify(fmt.Sprintf("depth of %q", b.Keys.Ready), err)
	}
	d := flow.Depth{Ready: ready.Val(), DeadLetters: dead.Val(), Oldest: created(head.Val())}
	tell(&d)
	return d, nil
}

// created is the created_at of a stored value, 0 for what is no acceptable envelope.
func created(value string) int64 {
	if frame, framed := envelope.Unframe(value); framed {
		value = frame.Body
	}
	e, err := envelope.Decode(value)
	if err != nil {
		return 0
	}
	return e.Meta.CreatedAt
}
