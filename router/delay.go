package router

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// MaxDelay is the longest delay a failed message can get (Z6).
const MaxDelay = 30 * 24 * time.Hour

var maxDelaySeconds = MaxDelay.Seconds()

// Jitter spreads the delays of messages that failed together.
type Jitter uint8

// The kinds of jitter.
const (
	NoJitter   Jitter = iota // the delay as computed
	FullJitter               // uniform in [0, delay)
)

// Backoff is a delay that grows with the attempts: min(Max, Base × Multiplier^(k-1)), where k is the attempts
// the handler saw (Z6).
type Backoff struct {
	// Base is the delay after the first failure. 0, the default, means no backoff.
	Base time.Duration
	// Multiplier is at least 1. 0 means its default of 1: a constant delay.
	Multiplier float64
	// Max bounds the delay. 0, the default, means only the bound of 30 days.
	Max time.Duration
	// Jitter is applied last. Defaults to NoJitter.
	Jitter Jitter
}

// Validate reports what is wrong with the fields, each by name.
func (b Backoff) Validate() error {
	var problems []error
	if b.Base < 0 {
		problems = append(problems, fmt.Errorf("Backoff.Base: %s is negative", b.Base))
	}
	if b.Multiplier != 0 && !(b.Multiplier >= 1) || math.IsInf(b.Multiplier, 1) {
		problems = append(problems, fmt.Errorf("Backoff.Multiplier: %v is not a finite number of at least 1", b.Multiplier))
	}
	if b.Max < 0 {
		problems = append(problems, fmt.Errorf("Backoff.Max: %s is negative", b.Max))
	}
	if b.Jitter > FullJitter {
		problems = append(problems, fmt.Errorf("Backoff.Jitter: %d is neither NoJitter nor FullJitter", b.Jitter))
	}
	return errors.Join(problems...)
}

// seconds is the delay for k, without rounding. Powers overflow to +Inf, which the bound takes in; nothing
// wraps around (B35).
func (b Backoff) seconds(k int64, random func() float64) float64 {
	d := b.Base.Seconds()
	if d > 0 && b.Multiplier > 1 { // 0 times an infinite power would be NaN
		d *= math.Pow(b.Multiplier, float64(max(k, 1)-1))
	}
	limit := maxDelaySeconds
	if b.Max > 0 {
		limit = min(limit, b.Max.Seconds())
	}
	d = min(d, limit)
	if b.Jitter == FullJitter {
		d *= random()
	}
	return d
}

// Delay decides how long a failed message of a zset queue waits (Z6). The first of the three that is set
// counts; none set means that a failed message is left to its lease.
type Delay struct {
	// Fixed is the same delay for all, in seconds; 0 releases at once. nil = not set.
	Fixed *float64
	// Policy computes the delay in seconds from k, the attempts the handler saw. NaN and negative results
	// count as 0. nil = not set. It runs on a goroutine of its own; a panic is reported and the message is
	// left to its lease.
	Policy func(k int64) float64
	// Backoff applies when its Base is above 0.
	Backoff Backoff
}

// Validate reports what is wrong with the fields, each by name.
func (d Delay) Validate() error {
	var problems []error
	if d.Fixed != nil && (math.IsNaN(*d.Fixed) || math.IsInf(*d.Fixed, 0) || *d.Fixed < 0) {
		problems = append(problems, fmt.Errorf("FailureDelay: %v is not a finite number of seconds from 0", *d.Fixed))
	}
	return errors.Join(append(problems, d.Backoff.Validate())...)
}

// Set reports whether a failed message is delayed at all.
func (d Delay) Set() bool { return d.Fixed != nil || d.Policy != nil || d.Backoff.Base > 0 }

// For is the delay in whole seconds after k attempts.
func (d Delay) For(k int64) int64 {
	k = max(k, 1)
	switch {
	case d.Fixed != nil:
		return Seconds(*d.Fixed)
	case d.Policy != nil:
		return Seconds(d.Policy(k))
	default:
		return Seconds(d.Backoff.seconds(k, rand.Float64))
	}
}

// Seconds bounds a delay to 0 to 30 days and rounds it up to whole seconds; NaN counts as 0 (Z6).
func Seconds(d float64) int64 {
	if !(d > 0) { // also NaN
		return 0
	}
	return int64(math.Ceil(min(d, maxDelaySeconds)))
}
