package publisher

import (
	"context"
	"errors"
	"fmt"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

var (
	// ErrConfig is returned by New when the config cannot work. It wraps all problems found, each naming its
	// field.
	ErrConfig = errors.New("publisher: config")

	// ErrEncode is returned when a message cannot become an envelope: a blank URN (envelope.ErrEmptyURN, E2),
	// data that is not one JSON object (envelope.ErrDataNotObject, E1) or that encoding/json refuses. Nothing
	// was sent.
	ErrEncode = errors.New("publisher: message cannot be encoded")

	// ErrNoDelay is returned when a delay is asked for in the legacy layout, which has none (L1).
	ErrNoDelay = errors.New("publisher: the legacy layout has no delayed publish; use the zset layout (L1)")

	// ErrNegativeDelay is returned when a delay is below zero (Z1).
	ErrNegativeDelay = errors.New("publisher: negative delay (Z1)")

	// ErrDuplicateBody is returned when the very same bytes wait in delayed already; they keep their time, and
	// nothing was added (Z1, B05). Bodies differ as long as their meta.id or created_at does.
	ErrDuplicateBody = errors.New("publisher: the same message is delayed already (Z1)")

	// ErrMayBeStored is returned when the connection failed and it is not certain that nothing was sent: as a
	// rule the command was, and its reply is lost. A copy published with the same id (WithID) can be told by it.
	ErrMayBeStored = errors.New("publisher: the message may have been stored")

	// ErrUnavailable is returned when the server could not be reached or cannot serve now. Nothing was stored;
	// the same call can succeed later.
	ErrUnavailable = errors.New("publisher: redis is not available, nothing was stored")

	// ErrRefused is returned when the server refuses the command until somebody changes something: a key that
	// holds another type, credentials, permissions. Nothing was stored.
	ErrRefused = errors.New("publisher: redis refuses the message, nothing was stored")

	// ErrNotSent is returned when the context had ended before the command was sent (its cause is wrapped), and
	// for the messages of a batch behind a part that failed.
	ErrNotSent = errors.New("publisher: the message was not sent")

	// ErrFull is returned beside ErrUnavailable when the server is at its memory limit (B43).
	ErrFull = lua.ErrFull
)

// errBehindFailure is what the messages behind a failed chunk get. It does not wrap that chunk's error, which
// would make them match its class, ErrMayBeStored say.
var errBehindFailure = fmt.Errorf("%w: an earlier part of the batch failed", ErrNotSent)

// encodeError is the error of a message that did not become an envelope.
func encodeError(err error) error { return fmt.Errorf("%w: %w", ErrEncode, err) }

// ended reports a context that ended before anything was sent. The store would have to call such a failure
// ambiguous, because a deadline that passes looks the same before and after the command is sent.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotSent, context.Cause(ctx))
}

// failed gives an error of the store its class and the queue's name and key. A server's own WRONGTYPE names
// no key.
func (p *Publisher) failed(err error) error {
	class := ErrRefused
	switch {
	case errors.Is(err, flow.ErrAmbiguous):
		class = ErrMayBeStored
	case errors.Is(err, flow.ErrTransient):
		class = ErrUnavailable
	}
	return fmt.Errorf("%w: queue %q, key %q: %w", class, p.queue, p.key, err)
}
