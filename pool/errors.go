package pool

import (
	"errors"

	"github.com/babelpool/babelpool/internal/flow"
)

var (
	// ErrConfig is returned by Run when the configuration is not valid. The error names every field at fault.
	ErrConfig = errors.New("pool: invalid config")

	// ErrRunTwice is returned by Run when the pool was run before. Make a new one.
	ErrRunTwice = errors.New("pool: Run was called before")

	// ErrNoQueue is returned by Pause and Resume for a name that is none of the pool's queues.
	ErrNoQueue = errors.New("pool: no such queue")

	// ErrNotStarted is returned by Depths before Run has begun to consume.
	ErrNotStarted = errors.New("pool: Run has not begun to consume")

	// ErrRefused is returned by Run when Redis refuses the client at start: wrong credentials, a
	// certificate that is not trusted, or a version before 6.2 (R5). A missing permission ends nothing: it is logged, and heals when it is granted.
	ErrRefused = errors.New("pool: redis refuses this client")

	// ErrAbandoned is returned by Run when handlers did not return although their contexts were cancelled.
	// Their messages come back when their leases run out. The error names them.
	ErrAbandoned = errors.New("pool: handlers did not return")

	// ErrLeaseLost is the cause of a handler's cancelled context when its message's lease is gone.
	ErrLeaseLost = flow.ErrLeaseLost

	// ErrHandlerTimeout is the cause of a handler's cancelled context when HandlerTimeout has passed.
	ErrHandlerTimeout = flow.ErrHandlerTimeout

	// ErrHardStop is the cause of a handler's cancelled context when DrainTimeout has passed at stop. An
	// error returned after that is not a failure: the message is handed back uncharged.
	ErrHardStop = flow.ErrHardStop
)
