package idempotency

import (
	"context"
	"log/slog"
	"time"
)

// Store remembers which messages were handled, by their meta.id, which is never empty and is used verbatim. It is called
// from many goroutines. Each call may be repeated, and gives up when its context ends.
type Store interface {
	// Seen reports whether a message is remembered.
	Seen(ctx context.Context, id string) (bool, error)
	// Remember notes that a message was handled. The context outlives the handler's.
	Remember(ctx context.Context, id string) error
	// Forget takes the note back: the message runs when it comes again. Forgetting what is not remembered is no error.
	// The middleware does not call it.
	Forget(ctx context.Context, id string) error
}

// Claims let one worker at a time handle a message. They are called from many goroutines.
type Claims interface {
	// Claim takes the claim for a holder, who is told by the token, or extends it, and reports whether it is the holder's
	// now. It runs out by itself after expiry. With the same token it may be repeated.
	Claim(ctx context.Context, id, token string, expiry time.Duration) (bool, error)
	// Release ends the holder's claim, and nobody else's.
	Release(ctx context.Context, id, token string) error
}

// Config says what Middleware works with. The zero value of a field is its default.
type Config struct {
	// Store remembers handled messages: a Redis for several processes, a Memory for one. Required.
	Store Store

	// Claims keep two workers from handling the same message at the same time; a Redis has them. They cost two more calls
	// for each message. Defaults to none.
	Claims Claims

	// ClaimExpiry is how long a claim outlives a process that died. While a handler runs its claim is renewed at a third
	// of it. Defaults to 30 s.
	ClaimExpiry time.Duration

	// ClaimDelay is how long a message waits that another worker is handling, as by delivery.Postpone: it is
	// charged no attempt. Defaults to 5 s.
	ClaimDelay time.Duration

	// Logger is told when a message cannot be remembered or its claim renewed; each at most once a minute. Defaults to
	// slog.Default().
	Logger *slog.Logger
}

// filled is the config with its defaults. A mistake in it is one in the program.
func (c Config) filled() Config {
	if c.Store == nil {
		panic("idempotency: Middleware needs a Store")
	}
	if c.ClaimExpiry < 0 || c.ClaimDelay < 0 {
		panic("idempotency: ClaimExpiry and ClaimDelay must not be negative")
	}
	if c.ClaimExpiry == 0 {
		c.ClaimExpiry = 30 * time.Second
	}
	if c.ClaimDelay == 0 {
		c.ClaimDelay = 5 * time.Second
	}
	return c
}
