package pool

import (
	"errors"
	"fmt"
)

// leastRecoveries: with 1 every message would be in its last chance, and be held alone.
const leastRecoveries = 2

// checkLosses checks what makes a pool give up or discard messages: MaxRecoveries and DeadLetterLimits.
func (p *plan) checkLosses() error {
	var problems []error
	fail := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch {
	case p.MaxRecoveries < 0:
		fail("MaxRecoveries: %d is negative", p.MaxRecoveries)
	case p.MaxRecoveries > 0 && p.MaxRecoveries < leastRecoveries:
		fail("MaxRecoveries: %d would give up all that one lost process held; set at least %d (B21)", p.MaxRecoveries, leastRecoveries)
	case p.MaxRecoveries > 0:
		for i, q := range p.Queues {
			if q.RetryAfter == 0 {
				fail("MaxRecoveries: leases of Queues[%d], %q, never run out, so no lost worker is noticed", i, q.Name)
			}
		}
	}
	limits := p.DeadLetterLimits
	if limits.Count < 0 {
		fail("DeadLetterLimits.Count: %d is negative", limits.Count)
	}
	if limits.Age < 0 {
		fail("DeadLetterLimits.Age: %s is negative", limits.Age)
	}
	if limits.Bytes < 0 {
		fail("DeadLetterLimits.Bytes: %d is negative", limits.Bytes)
	}
	return errors.Join(problems...)
}
