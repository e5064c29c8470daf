package pool

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/router"
)

// Layout is how a queue lies in Redis.
type Layout = flow.Layout

// The layouts of the contract.
const (
	Legacy = flow.Legacy // reliable list queue, the default (rules L)
	Zset   = flow.Zset   // compatible with Laravel's queue (rules Z)
)

// LegacyRetry is what becomes of a failed message in the legacy layout (L6).
type LegacyRetry = router.LegacyRetry

// The ways to retry in the legacy layout.
const (
	Leave   = router.LeaveToLease // it comes back after RetryAfter, attempts unchanged; the default
	Requeue = router.Requeue      // it goes to the tail at once, attempts raised; needs MaxAttempts
)

// UnknownURN is what becomes of a message without a handler (D4).
type UnknownURN = router.UnknownURN

// The strategies for messages without a handler.
const (
	UnknownDeadLetter = router.UnknownDeadLetter // dead-lettered as unknown_urn; the default
	UnknownDelete     = router.UnknownDelete     // acked
	UnknownRelease    = router.UnknownRelease    // put back uncharged while young, then dead-lettered
	UnknownFail       = router.UnknownFail       // treated as a failing handler
)

// BadMessage is what becomes of poison (D4) and of foreign jobs (Z8).
type BadMessage = router.BadMessage

// The strategies for such messages.
const (
	BadDeadLetter = router.BadDeadLetter // it goes to the dead letters; the default
	BadLeave      = router.BadLeave      // it is left to its lease, and so comes back for ever
)

// Backoff is a delay that grows with the attempts (Z6).
type Backoff = router.Backoff

// The kinds of jitter of a Backoff.
const (
	NoJitter   = router.NoJitter
	FullJitter = router.FullJitter
)

// DeadLetterLimits bound the dead letters of a queue (B42). Each field that is not 0 is a limit; the oldest records are
// discarded until all hold, soon after one was added and once in a while. Count is the most records. Age is the longest
// time since a record's failed_at, in whole seconds, rounded up; a record without one is as old as the next one behind it
// that has one, within a thousand; failed_at is by the clock of the process that wrote it, and is compared with the
// server's. Bytes is the most memory of the list as MEMORY USAGE counts it. Only the queue's own dead letter key is
// touched; queues that share one share the limits. Trimming lags behind a burst of dead letters by a moment.
type DeadLetterLimits = flow.DeadLetterLimits

// Config configures a Pool. The zero value of every field is its default.
type Config struct {
	// Client is the connection to Redis: a *redis.Client, a Sentinel-backed one or a *redis.ClusterClient.
	// It is used as it is, and never closed. Required. OpenRedis makes a suitable one.
	Client redis.UniversalClient
	// Queues are the queues to consume. At least one.
	Queues []Queue
	// Layout is the layout of all queues that do not set their own. Defaults to Legacy.
	Layout Layout
	// Handler handles the messages of all queues that do not set their own; usually a *router.Mux. Required
	// when a queue has none.
	Handler delivery.Handler
	// KeyPrefix goes before every key, in both layouts (R5), such as "laravel-database-". Defaults to none.
	KeyPrefix string

	// Concurrency is the number of workers, each running one handler at a time. Defaults to 4 × GOMAXPROCS,
	// at least 16.
	Concurrency int
	// Prefetch is the most messages held and unsettled by the whole pool, running ones included. Defaults to
	// 4 × Concurrency, and to at least one per queue. At least Concurrency.
	Prefetch int
	// MaxInFlightBytes bounds the bodies held in memory; the message that crosses it is the last one taken,
	// so it can be passed by one body per queue. Defaults to 64 MiB.
	MaxInFlightBytes int64

	// Batch is the most messages one call to Redis reserves or settles. A call takes what is there and waits for no
	// more, so a large batch does not delay a message; a small one costs Redis many times its work. Defaults to 0:
	// 256 to reserve and 1,000 to settle. At most 1,000.
	Batch int

	// RetryAfter is the lease: how long a message stays reserved before others may take it. Rounded up to
	// whole seconds, at least 2 s. Defaults to 90 s.
	RetryAfter time.Duration
	// RetryAfterDisabled makes leases never run out: what a dead process held stays in flight for ever (L5).
	RetryAfterDisabled bool
	// DisableLeaseRenewal stops the renewal of leases at a third of RetryAfter. HandlerTimeout must then end
	// at least a second before the lease.
	DisableLeaseRenewal bool
	// MigrationBatch is the most expired or due messages one reserve moves to ready (Z2). Defaults to 0: as
	// many as there are, in steps of 1,000.
	MigrationBatch int
	// AdoptOrphans gives messages in flight without a deadline one, once they were seen so for RetryAfter
	// (L7). Leave it off beside consumers that write no deadlines: all they work on looks like orphans.
	AdoptOrphans bool

	// MaxAttempts dead-letters a message whose handler failed in its MaxAttempts-th delivery (A1). Defaults
	// to 0: never. In the legacy layout it needs LegacyRetry: Requeue.
	MaxAttempts int64
	// MaxRecoveries dead-letters, as poison and without running it, a message that so many workers were lost with: each
	// time its lease ran out and nobody had ended it, because the process died, was frozen for longer than the lease, or
	// could not reach Redis (B21). What a handler's failure left to its lease does not count. Whatever a dead process
	// held is counted, so the message that killed it is told from its neighbours by the last chance: of those that one
	// more loss would dead-letter, a pool holds one at a time. Only this library counts: what other consumers of the
	// queue return to ready is not seen. Counts live in the hash <ready>:recoveries; they end with the message, and are
	// forgotten when no worker was lost for a day, or ten leases if that is longer. Defaults to 0: off, nothing is
	// counted, and such a message comes back for ever. At least 2, as every message would be in its last chance with 1;
	// 3 or more is advisable. It needs leases that run out.
	MaxRecoveries int64
	// DeadLetterLimits bound the dead letters of each queue: their number, their age, their memory. The oldest are
	// discarded, and counted in Stats. Defaults to none: dead letters stay until somebody takes them.
	DeadLetterLimits DeadLetterLimits
	// LegacyRetry is what becomes of a failed message in legacy queues (L6). Defaults to Leave.
	LegacyRetry LegacyRetry
	// FailureDelay is how many seconds a failed message of a zset queue waits; 0 releases it at once. nil
	// means not set. With none of FailureDelay, BackoffPolicy and Backoff set, it is left to its lease (Z5).
	FailureDelay *float64
	// BackoffPolicy computes that wait, in seconds, from the attempts the handler saw (Z6).
	BackoffPolicy func(k int64) float64
	// Backoff is that wait as a growing delay (Z6). It applies when Base is above 0.
	Backoff Backoff

	// OnError is told of every failed run, of poison and of messages without a handler. env is zero where
	// raw is poison. It runs after the message was settled; a panic in it is logged.
	OnError func(ctx context.Context, err error, env envelope.Envelope, raw string)
	// OnUnknownURN runs in place of a missing handler; then the message is acked, or fails when it returns
	// an error (D4).
	OnUnknownURN func(ctx context.Context, err error, env envelope.Envelope, raw string) error
	// UnknownURN is what becomes of a message without a handler when OnUnknownURN is nil. Defaults to
	// UnknownDeadLetter.
	UnknownURN UnknownURN
	// UnknownURNDelay is the wait of UnknownRelease in zset queues. Defaults to 1 s.
	UnknownURNDelay time.Duration
	// UnknownURNMaxAge is the age, by created_at, from which UnknownRelease dead-letters. Defaults to 1 h.
	UnknownURNMaxAge time.Duration
	// Poison is what becomes of a message that is no acceptable envelope (E3). Defaults to BadDeadLetter.
	Poison BadMessage
	// ForeignJobs is what becomes of native Laravel jobs in a zset queue (Z8). Defaults to BadDeadLetter,
	// which keeps their bytes, so that they can go back as they were.
	ForeignJobs BadMessage

	// HandlerTimeout ends a handler's context. Defaults to 10 min. Negative means none.
	HandlerTimeout time.Duration
	// DrainTimeout is how long running handlers may go on after Run's context has ended. Defaults to 30 s.
	DrainTimeout time.Duration
	// HardStopTimeout is how long handlers may take to return after DrainTimeout has cancelled their
	// contexts, and how long the last settlements may take. Defaults to 5 s.
	HardStopTimeout time.Duration
	// PollInterval is the pause where the pool cannot block on an empty queue, and the tick of the scheduler.
	// Defaults to 1 s.
	PollInterval time.Duration

	// LivenessLimit is how long a loop of the pool may be in one turn before Health calls the pool not live. A turn is a
	// call to Redis or two: with a client that honours deadlines it lasts seconds at most. Defaults to 1 min.
	LivenessLimit time.Duration
	// ReadinessLimit is how long Redis may be away before Health calls the pool not ready. Defaults to 30 s.
	ReadinessLimit time.Duration
	// OnCall is told of each call to Redis made for messages, after it: metrics live on it. It is called from several
	// goroutines at once, and each waits for it: it must be quick, and must not block. A panic in it is logged once.
	OnCall func(Call)

	// Logger receives one line per change of state. Bodies are never logged. Defaults to slog.Default().
	Logger *slog.Logger
}

// Queue is one queue of a Pool. What it does not set, it has from the Config.
type Queue struct {
	// Name is the logical name (R4). Required.
	Name string
	// Layout is the queue's own layout.
	Layout Layout
	// RetryAfter is the queue's own lease.
	RetryAfter time.Duration
	// Weight is the queue's share of workers and slots beside the others. Idle shares are lent. Defaults
	// to 1, at most 100.
	Weight int
	// DeadLetterKey is the physical key of the queue's dead letters, taken as it is: no prefix, no token
	// (D1). Defaults to the one the layout derives.
	DeadLetterKey string
	// Handler handles this queue's messages.
	Handler delivery.Handler
}
