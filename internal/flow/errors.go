package flow

import "errors"

var (
	// ErrTransient is returned when Redis could not be reached or cannot serve now; the same call can
	// succeed later without anybody's help.
	ErrTransient = errors.New("redis is not available now")

	// ErrPermanent is returned when the call fails until somebody changes the server, the keys or the
	// configuration: wrong password, missing permission, a key of another type.
	ErrPermanent = errors.New("redis refuses the call")

	// ErrAmbiguous is returned beside ErrTransient when the call may have been carried out: it was sent,
	// and its reply was lost.
	ErrAmbiguous = errors.New("the call may have been carried out")

	// ErrAuth is returned beside ErrPermanent when the credentials are refused. It ends Run at start.
	ErrAuth = errors.New("redis refuses the credentials")

	// ErrUntrusted is returned beside ErrPermanent when the server's TLS certificate is not accepted. It ends Run at
	// start.
	ErrUntrusted = errors.New("the certificate of redis is not trusted")

	// ErrLeaseLost is the cause of a handler's cancelled context when its message's lease is gone: another
	// consumer may run the message, and this run's outcome is not recorded (L4, Z4).
	ErrLeaseLost = errors.New("the message's lease is lost")

	// ErrHandlerTimeout is the cause of a handler's cancelled context when HandlerTimeout has passed.
	ErrHandlerTimeout = errors.New("the handler's time is over")

	// ErrHardStop is the cause of a handler's cancelled context when the pool's DrainTimeout has passed.
	ErrHardStop = errors.New("the pool stops and its drain time is over")
)
