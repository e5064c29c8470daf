package chaos

import "errors"

// ErrServerGone is returned when a server that was killed did not start again.
var ErrServerGone = errors.New("chaos: the server did not come back")
