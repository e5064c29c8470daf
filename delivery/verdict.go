package delivery

import (
	"errors"
	"fmt"
	"time"
)

// RetryError is the verdict of RetryAfter.
type RetryError struct {
	// Delay is how long the message should wait before its next delivery.
	Delay time.Duration
	// Err is the handler's reason; it may be nil.
	Err error
}

// Error says the verdict and its reason.
func (e *RetryError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("retry after %s", e.Delay)
	}
	return fmt.Sprintf("retry after %s: %s", e.Delay, e.Err)
}

// Unwrap is the handler's reason.
func (e *RetryError) Unwrap() error { return e.Err }

// RetryAfter makes a handler's failure come back after d instead of after the configured delay. It is a
// failure like any other: it is charged, and counts towards MaxAttempts. d is rounded up to whole seconds;
// below zero counts as zero, and more than 30 days as 30 days (Z6).
//
// Only the zset layout can delay a message. In the legacy layout the verdict is an ordinary failure: the
// message comes back after retryAfter, or at once where failures are requeued.
func RetryAfter(d time.Duration, err error) error { return &RetryError{Delay: d, Err: err} }

// PostponeError is the verdict of Postpone.
type PostponeError struct {
	// Delay is how long the message should wait before its next delivery.
	Delay time.Duration
	// Err is the reason; it may be nil.
	Err error
}

// Error says the verdict and its reason.
func (e *PostponeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("postponed for %s", e.Delay)
	}
	return fmt.Sprintf("postponed for %s: %s", e.Delay, e.Err)
}

// Unwrap is the reason.
func (e *PostponeError) Unwrap() error { return e.Err }

// Postpone puts a message off for d: it was not its turn, because a limit is reached say. That is no failure: nothing is
// charged, MaxAttempts does not see it, OnError is not told, and the next delivery has the same number (Z7). d is rounded
// up to whole seconds; below zero counts as zero, and more than 30 days as 30 days (Z6).
//
// In the zset layout the message goes to delayed. In the legacy layout, which has no delayed messages, it stays in flight,
// where its lease ends after d, and comes back then like one whose worker died; so d counts among the messages in flight,
// and an idle queue takes up to a second longer.
func Postpone(d time.Duration, err error) error { return &PostponeError{Delay: d, Err: err} }

// DeadLetterError is the verdict of DeadLetter.
type DeadLetterError struct {
	// Err is the handler's reason; it may be nil.
	Err error
}

// Error says the verdict and its reason.
func (e *DeadLetterError) Error() string {
	if e.Err == nil {
		return "dead-letter"
	}
	return "dead-letter: " + e.Err.Error()
}

// Unwrap is the handler's reason.
func (e *DeadLetterError) Unwrap() error { return e.Err }

// DeadLetter makes a handler's failure final: the message goes to the dead letters with reason "failed",
// whatever MaxAttempts says. Use it for what no retry can mend.
func DeadLetter(err error) error { return &DeadLetterError{Err: err} }

// Reason is what a verdict wraps: the error a dead letter records. Other errors are their own reason.
func Reason(err error) error {
	var dead *DeadLetterError
	if errors.As(err, &dead) && dead.Err != nil {
		return dead.Err
	}
	var retry *RetryError
	if errors.As(err, &retry) && retry.Err != nil {
		return retry.Err
	}
	var put *PostponeError
	if errors.As(err, &put) && put.Err != nil {
		return put.Err
	}
	return err
}
