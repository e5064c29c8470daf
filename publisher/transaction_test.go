package publisher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/testredis"
)

// TestTransaction: the caller's own command and the message together, or neither.
func TestTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b testredis.Backend, at target) {
		p := at.open(t)
		own := b.Prefix + "order:1042"
		queue := func(pipe redis.Pipeliner) {
			t.Helper()
			pipe.Set(t.Context(), own, "paid", 0)
			for range 2 {
				if got, err := p.PublishIn(t.Context(), pipe, urn, nil, fixed()...); got != id || err != nil {
					t.Fatal(got, err)
				}
			}
			at.stored(t) // nothing before Exec
		}

		dropped := at.direct.TxPipeline()
		queue(dropped)
		dropped.Discard()
		if cmds, err := dropped.Exec(t.Context()); len(cmds) != 0 || err != nil {
			t.Fatal(cmds, err)
		}
		at.stored(t)
		if n := at.direct.Exists(t.Context(), own).Val(); n != 0 {
			t.Error("the caller's own write was done")
		}

		kept := at.direct.TxPipeline()
		queue(kept)
		if _, err := kept.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		at.stored(t, body("orders", `{}`), body("orders", `{}`))
		if got := at.direct.Get(t.Context(), own).Val(); got != "paid" {
			t.Errorf("the caller's own write: %q", got)
		}
	})
}

// TestTransactionGivenUp: a change of a watched key leaves nothing of the message.
func TestTransactionGivenUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b testredis.Backend, at target) {
		p := at.open(t)
		own := b.Prefix + "balance"
		err := at.direct.Watch(t.Context(), func(tx *redis.Tx) error {
			if err := at.direct.Set(t.Context(), own, "somebody else's", 0).Err(); err != nil {
				return err
			}
			_, err := tx.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
				pipe.Set(t.Context(), own, "mine", 0)
				_, err := p.PublishIn(t.Context(), pipe, urn, nil)
				return err
			})
			return err
		}, own)
		if !errors.Is(err, redis.TxFailedErr) {
			t.Errorf("Exec: %v", err)
		}
		at.stored(t)
	})
}

// TestPipelineLostReply covers B03 where the client library would resend: the caller's client has its default
// number of tries.
func TestPipelineLostReply(t *testing.T) {
	t.Parallel()
	type pipelined func(context.Context, func(redis.Pipeliner) error) ([]redis.Cmder, error)
	for name, kind := range map[string]struct {
		run   func(*redis.Client) pipelined
		match string
	}{
		"pipeline":                  {func(c *redis.Client) pipelined { return c.Pipelined }, "rpush"},
		"transaction":               {func(c *redis.Client) pipelined { return c.TxPipelined }, "exec"},
		"transaction, before EXEC":  {func(c *redis.Client) pipelined { return c.TxPipelined }, "rpush"},
		"transaction, before RPUSH": {func(c *redis.Client) pipelined { return c.TxPipelined }, "multi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b testredis.Backend, at target) {
				proxy := faultproxy.Start(t, b.Addr)
				at.Client = retrying(t, proxy.Addr())
				p := at.open(t)
				if err := at.Client.Ping(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				swallow := proxy.SwallowNext(kind.match)
				own := b.Prefix + "own"
				_, err := kind.run(at.Client.(*redis.Client))(t.Context(), func(pipe redis.Pipeliner) error {
					_, err := p.PublishIn(t.Context(), pipe, urn, nil, fixed()...)
					pipe.Incr(t.Context(), own)
					return err
				})
				wait(t, swallow)
				var reply redis.Error
				if err == nil || errors.As(err, &reply) {
					t.Errorf("Exec: %v, want the failure of the connection", err)
				}
				testredis.Eventually(t, patience, func() bool { return at.direct.Exists(t.Context(), own).Val() == 1 },
					"the server works off what it was sent")
				at.stored(t, body("orders", `{}`))
				if got := at.direct.Get(t.Context(), own).Val(); got != "1" {
					t.Errorf("the caller's command ran %s times", got)
				}
			})
		})
	}
}
