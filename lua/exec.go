package lua

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
)

// processor is the part of a Redis client a store needs.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// onceSlice is a command with a reply of strings that the client library sends once. A resent reserve hides
// the messages of the first, a resent publish stores them twice (B03); MaxRetries alone does not prevent it,
// as a cluster client resends by its own rules.
type onceSlice struct{ *redis.StringSliceCmd }

// NoRetry makes single, cluster and failover clients send the command once.
func (onceSlice) NoRetry() bool { return true }

// onceInt is the same for a reply of one integer.
type onceInt struct{ *redis.IntCmd }

// NoRetry makes single, cluster and failover clients send the command once.
func (onceInt) NoRetry() bool { return true }

// call is one run of a script under construction: the command's words, so that they are laid out once.
type call struct {
	script *script
	words  []any
}

// newCall starts a call with room for n arguments.
func newCall(s *script, keys []string, n int) *call {
	c := &call{script: s, words: make([]any, 0, 3+len(keys)+n)}
	c.words = append(c.words, "evalsha", s.hash, len(keys))
	for i := range keys {
		c.words = append(c.words, &keys[i])
	}
	return c
}

// arg adds arguments. A *string saves the copy to the heap that a string in an interface costs.
func (c *call) arg(values ...any) *call {
	c.words = append(c.words, values...)
	return c
}

// run sends the call. When the server does not know the script, nothing has happened yet, and the call goes
// out again with the text, which also makes it known (R3, B46).
func (c *call) run(ctx context.Context, client processor) ([]string, error) {
	reply, err := send(ctx, client, c.words)
	if err != nil && isNoScript(err) {
		c.words[0], c.words[1] = "eval", c.script.text
		reply, err = send(ctx, client, c.words)
	}
	if err != nil {
		return nil, failed(ctx, client, c.script.name, err)
	}
	return reply, nil
}

// failed classifies a call's error, and makes a cluster client look who serves what by now. By itself it does that
// after MOVED, but once a minute only when a master does not answer, as it does not send our commands to anybody
// else: the loops would knock at a dead master long after its replica has taken over.
func failed(ctx context.Context, client any, what string, err error) error {
	err = classify(what, err)
	if c, ok := client.(interface{ ReloadState(ctx context.Context) }); ok && errors.Is(err, flow.ErrTransient) {
		c.ReloadState(ctx) // in the background, several at once as one
	}
	return err
}

func send(ctx context.Context, client processor, words []any) ([]string, error) {
	cmd := onceSlice{redis.NewStringSliceCmd(ctx, words...)}
	if err := client.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Val(), nil
}

// isNoScript also knows the wording of proxies that put "ERR " before the code.
func isNoScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }
