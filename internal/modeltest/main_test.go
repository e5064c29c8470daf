package modeltest

import (
	"flag"
	"os"
	"testing"

	"github.com/babelpool/babelpool/internal/testredis"
)

// A round is one rapid.Check with a client of its own, one after another. rapid takes the number of sequences of
// a round from one flag for all tests, so the rounds differ in number.
const (
	perRound = "25" // sequences
	perCheck = "40" // calls of a sequence, on average
)

func TestMain(m *testing.M) {
	// A -rapid.checks or -rapid.steps on the command line still counts, as it is read later.
	_ = flag.Set("rapid.checks", perRound) // the flags exist: rapid has registered them
	_ = flag.Set("rapid.steps", perCheck)
	testredis.Main(m)
}

// scaled is the value of the form that runs.
func scaled[T any](short, full T) T {
	if os.Getenv("BQ_STRESS") == "1" {
		return full
	}
	return short
}
