// Package retry is the one policy by which every loop of a pool repeats a call to Redis that failed.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Loop is the retry state of one loop. It is not safe for concurrent use: each loop has its own.
type Loop struct {
	fast *backoff.ExponentialBackOff
	slow *backoff.ExponentialBackOff
}

// New makes a Loop: 100 ms at first, 650 ms at most, randomised by a half. So a loop tries at most five times a
// second, its first call included, and again within a second of Redis being back; the client library may add a
// second of its own after many failed dials.
func New() *Loop {
	return &Loop{fast: policy(100*time.Millisecond, 650*time.Millisecond), slow: policy(time.Second, 5*time.Second)}
}

// policy makes an exponential policy that never gives up (B35: a wait beyond the default elapsed-time limit
// would end the retries without a word).
func policy(initial, limit time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(initial),
		backoff.WithMaxInterval(limit),
		backoff.WithRandomizationFactor(0.5),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0),
	)
}

// Wait pauses before the next try and returns ctx's cause when ctx ends first.
func (l *Loop) Wait(ctx context.Context) error { return Sleep(ctx, l.fast.NextBackOff()) }

// Slow pauses before the next try of a call that only somebody's help can mend: 1 s at first, 5 s at most.
func (l *Loop) Slow(ctx context.Context) error { return Sleep(ctx, l.slow.NextBackOff()) }

// NextSlow is the pause Slow would make.
func (l *Loop) NextSlow() time.Duration { return l.slow.NextBackOff() }

// Reset notes a success.
func (l *Loop) Reset() { l.fast.Reset(); l.slow.Reset() }

// Sleep pauses for d, or until ctx ends; then it returns ctx's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
