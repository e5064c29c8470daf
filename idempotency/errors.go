package idempotency

import "errors"

var (
	// ErrConfig is returned by NewRedis when the config cannot work. It wraps all problems found, each naming its field.
	ErrConfig = errors.New("idempotency: config")

	// ErrLookUp is returned for a message when the store cannot say whether it was handled. Its handler did not run; the
	// message is retried as any that fails.
	ErrLookUp = errors.New("idempotency: cannot tell whether the message was handled")

	// ErrClaim is returned for a message when its claim could not be asked for. Its handler did not run; the message is
	// retried as any that fails.
	ErrClaim = errors.New("idempotency: cannot claim the message")

	// ErrClaimed is returned for a message that another worker is handling now: it has the claim. The handler did not run,
	// and the message comes again, since the other may still fail.
	ErrClaimed = errors.New("idempotency: another worker is handling the message")

	// ErrClaimLost is the cause with which a handler's context ends when another worker has taken over the claim, because
	// it could not be renewed before it ran out.
	ErrClaimLost = errors.New("idempotency: another worker has taken over the message")
)
