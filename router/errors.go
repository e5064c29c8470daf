package router

import (
	"errors"
	"fmt"
)

// ErrUnknownURN is returned by Mux.Handle when no handler is registered for a message's URN. What becomes of
// the message is decided by D4, not by the rules for failing handlers.
var ErrUnknownURN = errors.New("router: no handler for the URN")

// ErrExited is the failure of a handler that ended its goroutine with runtime.Goexit.
var ErrExited = errors.New("router: the handler called runtime.Goexit")

// ErrTooManyAttempts is the failure of a message that arrives with more deliveries behind it than MaxAttempts
// allows: workers died over it (A1). Its handler was not run.
var ErrTooManyAttempts = errors.New("router: delivered more often than MaxAttempts allows")

// PanicError is the failure of a handler, middleware or hook that panicked.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the goroutine's stack at the panic.
	Stack []byte
}

// Error says what was panicked with. The stack is not part of it: it would fill dead letter records.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// WorkersLostError is the reason for giving up a message that workers were lost with (B21). Its handler was not run.
type WorkersLostError struct {
	// Workers is how many leases of the message ran out without an end.
	Workers int64
}

// Error is the text of the dead letter record.
func (e *WorkersLostError) Error() string {
	return fmt.Sprintf("worker lost %d times", e.Workers)
}
