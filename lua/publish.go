package lua

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Publish appends messages to the tail of ready in one command (L1). It is sent once: on an error that is
// flow.ErrAmbiguous all of them may have been stored, on any other none was.
func (s *Legacy) Publish(ctx context.Context, bodies []string) error {
	if err := push(ctx, s.Client, s.Keys.Ready, bodies); err != nil {
		return failed(ctx, s.Client, fmt.Sprintf("publish to %q", s.Keys.Ready), err)
	}
	return nil
}

// PublishIn queues the same command on a caller's pipeline or transaction, which the client library then does
// not send a second time after a lost reply (B03).
func (s *Legacy) PublishIn(ctx context.Context, pipe redis.Pipeliner, bodies []string) error {
	return push(ctx, pipe, s.Keys.Ready, bodies)
}

// Publish appends messages to the tail of ready, one notify token each, in one step (Z1). It is sent once,
// with the same meaning of errors as in the legacy layout.
func (s *Zset) Publish(ctx context.Context, bodies []string) error {
	c := newCall(zsetPublish, []string{s.Keys.Ready, s.Keys.Notify}, len(bodies))
	for i := range bodies {
		c.arg(&bodies[i])
	}
	_, err := c.run(ctx, s.Client)
	return err
}

// PublishIn queues the same on a caller's pipeline. Plain commands, because a script that the server does not
// know cannot fall back inside a transaction (B46); the step is one when the caller's pipeline is a MULTI.
func (s *Zset) PublishIn(ctx context.Context, pipe redis.Pipeliner, bodies []string) error {
	if err := push(ctx, pipe, s.Keys.Ready, bodies); err != nil {
		return err
	}
	tokens := make([]string, len(bodies))
	for i := range tokens {
		tokens[i] = "1"
	}
	return push(ctx, pipe, s.Keys.Notify, tokens)
}

// push sends or queues one RPUSH that the client library does not repeat.
func push(ctx context.Context, client processor, key string, values []string) error {
	words := make([]any, 0, 2+len(values))
	words = append(words, "rpush", key)
	for i := range values {
		words = append(words, &values[i])
	}
	return client.Process(ctx, onceInt{redis.NewIntCmd(ctx, words...)})
}

// Delayed is a message to publish later.
type Delayed struct {
	Delay int64 // whole seconds, rounded up by the caller
	Body  string
}

// PublishDelayed puts messages in delayed (Z1) and says of each whether it was added: false means that
// delayed holds the same bytes already. It is sent once.
func (s *Zset) PublishDelayed(ctx context.Context, messages []Delayed) ([]bool, error) {
	c := newCall(zsetDelay, []string{s.Keys.Delayed}, 1+2*len(messages)).arg(s.now())
	for i := range messages {
		c.arg(messages[i].Delay, &messages[i].Body)
	}
	reply, err := c.run(ctx, s.Client)
	if err != nil {
		return nil, err
	}
	added, err := numbers(zsetDelay, reply, len(messages))
	if err != nil {
		return nil, err
	}
	results := make([]bool, len(added))
	for i, n := range added {
		results[i] = n == 1
	}
	return results, nil
}
