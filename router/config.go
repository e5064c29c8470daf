package router

import (
	"context"
	"log/slog"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// LegacyRetry is what becomes of a failed message in the legacy layout (L6).
type LegacyRetry uint8

// The ways to retry in the legacy layout.
const (
	LeaveToLease LegacyRetry = iota // comes back after retryAfter, attempts unchanged
	Requeue                         // goes to the tail at once, attempts raised; needs MaxAttempts
)

// UnknownURN is what becomes of a message without a handler (D4).
type UnknownURN uint8

// The strategies for messages without a handler.
const (
	UnknownDeadLetter UnknownURN = iota // dead-lettered as unknown_urn
	UnknownDelete                       // acked
	UnknownRelease                      // put back uncharged while young, then dead-lettered
	UnknownFail                         // treated as a failing handler
)

// BadMessage is what becomes of a message that no handler of this system can take: poison (D4) or a foreign
// job (Z8).
type BadMessage uint8

// The strategies for such messages.
const (
	BadDeadLetter BadMessage = iota // goes to the dead letters
	BadLeave                        // is left to its lease, and so comes back for ever
)

// Policy is how a pool treats what its handlers do. It holds for all queues of the pool.
type Policy struct {
	MaxAttempts      int64
	MaxRecoveries    int64 // 0 = lost workers are not counted (B21)
	LegacyRetry      LegacyRetry
	Delay            Delay
	UnknownURN       UnknownURN
	UnknownURNDelay  time.Duration
	UnknownURNMaxAge time.Duration
	Poison           BadMessage
	ForeignJobs      BadMessage
	HandlerTimeout   time.Duration // 0 = none

	// OnError is told of every failed run, poison and unknown URN. env is zero where raw is poison.
	OnError func(ctx context.Context, err error, env envelope.Envelope, raw string)
	// OnUnknownURN runs in place of the missing handler; then the message is acked, or fails as with a
	// handler (D4).
	OnUnknownURN func(ctx context.Context, err error, env envelope.Envelope, raw string) error
}

// Source is where workers take messages from. Take blocks; it is false at the end. It is called from all workers.
type Source interface {
	Take() (*flow.Reservation, bool)
}

// Queue is one queue as the workers see it.
type Queue struct {
	Name     string
	Layout   flow.Layout
	Handler  delivery.Handler
	Book     *flow.Book
	Counters *flow.Counters
	Out      chan<- flow.Settlement
}

// Config is what a Router is made of.
type Config struct {
	Workers int
	Source  Source
	Queues  []Queue
	Policy  Policy
	Logger  *slog.Logger
}
