package shard

import (
	"errors"
	"fmt"

	"github.com/babelpool/babelpool/publisher"
)

// ErrNames is returned when a queue cannot have shards: its name is empty or holds a brace (R3, R4), or their number
// is not from 1 to 1,024. New returns it inside publisher.ErrConfig.
var ErrNames = errors.New("shard: names")

// BatchError is returned by PublishBatch when not every message is stored. It counts; the results say it of each
// message. It matches, by errors.Is, whatever the error of a failed shard matches, and so can match several of the
// classes of package publisher.
type BatchError struct {
	Stored      int // messages that are stored
	MayBeStored int // messages whose outcome is not known (publisher.ErrMayBeStored)
	NotStored   int // messages that are not stored: all other classes

	// Shards are the errors of the shards in which something failed, in the order of Names; each is one of
	// publisher.PublishBatch.
	Shards []error
}

// Error tells the counts and the first shard's error.
func (e *BatchError) Error() string {
	text := fmt.Sprintf("shard: of %d messages of the batch %d are stored, %d may be and %d are not: ",
		e.Stored+e.MayBeStored+e.NotStored, e.Stored, e.MayBeStored, e.NotStored)
	if more := len(e.Shards) - 1; more > 0 {
		return text + fmt.Sprintf("%v; and %d more shards failed", e.Shards[0], more)
	}
	return text + e.Shards[0].Error()
}

// Unwrap gives the shards' errors to errors.Is and errors.As.
func (e *BatchError) Unwrap() []error { return e.Shards }

// count sorts the results.
func (e *BatchError) count(results []publisher.Result) {
	for i := range results {
		switch err := results[i].Err; {
		case err == nil:
			e.Stored++
		case errors.Is(err, publisher.ErrMayBeStored):
			e.MayBeStored++
		default:
			e.NotStored++
		}
	}
}
