package flow

import "time"

// DeadLetterLimits bound the dead letters of a queue (B42). The oldest are discarded. Zero fields are no limits.
type DeadLetterLimits struct {
	Count int           // most records
	Age   time.Duration // longest time since a record's failed_at
	Bytes int64         // most memory of the list, as Redis counts it
}
