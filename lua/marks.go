package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Marks are what consumers note about messages by their meta.id: that one was handled (bq:idemp:, shared with other
// SDKs), and that one is being handled now (bq:claim:, R6). Each call touches one key, so that ids may fall in any
// slot of a cluster. Every call may be sent again.
type Marks struct {
	Client redis.UniversalClient
	Prefix string // before every key (R5)
}

func (m Marks) seen(id string) string  { return m.Prefix + "bq:idemp:" + id }
func (m Marks) claim(id string) string { return m.Prefix + "bq:claim:" + id }

// Seen reports whether a message was handled: whether its key is there, whatever it holds.
func (m Marks) Seen(ctx context.Context, id string) (bool, error) {
	n, err := m.Client.Exists(ctx, m.seen(id)).Result()
	return n > 0, classify("seen", err)
}

// Remember notes that a message was handled. A ttl of 0 is for ever. A note that is there keeps its own time, which may
// be longer.
func (m Marks) Remember(ctx context.Context, id string, ttl time.Duration) error {
	return classify("remember", m.Client.SetNX(ctx, m.seen(id), "1", ttl).Err())
}

// Forget takes the note back.
func (m Marks) Forget(ctx context.Context, id string) error {
	return classify("forget", m.Client.Del(ctx, m.seen(id)).Err())
}

// Claim takes a message's claim for a holder, or extends it, and reports whether it is the holder's now.
func (m Marks) Claim(ctx context.Context, id, token string, expiry time.Duration) (bool, error) {
	return m.decide(ctx, takeClaim, id, token, max(expiry.Milliseconds(), 1))
}

// Unclaim ends the holder's claim, if it still has it.
func (m Marks) Unclaim(ctx context.Context, id, token string) error {
	_, err := m.decide(ctx, endClaim, id, token)
	return err
}

func (m Marks) decide(ctx context.Context, s *script, id string, args ...any) (bool, error) {
	reply, err := newCall(s, []string{m.claim(id)}, len(args)).arg(args...).run(ctx, resending{m.Client})
	if err != nil {
		return false, err
	}
	n, err := numbers(s, reply, 1)
	if err != nil {
		return false, err
	}
	return n[0] == 1, nil
}

// resending lets the client send a command again, by its own settings: what a claim does twice it has done once.
type resending struct{ processor }

// Process passes a command on without its NoRetry.
func (r resending) Process(ctx context.Context, cmd redis.Cmder) error {
	if once, ok := cmd.(onceSlice); ok {
		cmd = once.StringSliceCmd
	}
	return r.processor.Process(ctx, cmd)
}
