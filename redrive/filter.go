package redrive

import (
	"slices"
	"time"
)

// Filter chooses dead letters. What is not set chooses all.
type Filter struct {
	// URN is the message's.
	URN string
	// Reason is the record's: failed, unknown_urn or poison (D2).
	Reason string
	// IDs are meta.ids, of which the message's is one.
	IDs []string
	// OlderThan and NewerThan bound how long ago the message was given up. A record that does not say matches neither.
	OlderThan, NewerThan time.Duration
}

func (f *Filter) matches(l *Letter, now time.Time) bool {
	age := l.Age(now)
	switch {
	case f.URN != "" && l.URN != f.URN,
		f.Reason != "" && l.Why.Reason != f.Reason,
		len(f.IDs) > 0 && !slices.Contains(f.IDs, l.ID),
		f.OlderThan > 0 && (l.Why.FailedAt <= 0 || age < f.OlderThan),
		f.NewerThan > 0 && (l.Why.FailedAt <= 0 || age > f.NewerThan):
		return false
	}
	return true
}
