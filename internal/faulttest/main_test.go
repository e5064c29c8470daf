package faulttest

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// patience bounds every wait that is no assertion about time: a busy machine may need long, a stuck test must
// end.
var patience = scaled(time.Minute, 5*time.Minute)

// TestMain runs the tests, or, in a process that a test started, a consumer.
func TestMain(m *testing.M) {
	if config := os.Getenv(childEnv); config != "" {
		os.Exit(childMain(config))
	}
	// These tests wait for leases and outages far more than they compute; one per processor would take
	// minutes. A -parallel on the command line still counts, as it is read later.
	_ = flag.Set("test.parallel", "8") // the flag exists: m has registered it
	redis.SetLogger(silence{})         // the client library writes a line for each failed dial
	testredis.Main(m)
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// stress reports whether the full forms run.
func stress() bool { return os.Getenv("BQ_STRESS") == "1" }

// scaled is the value of the form that runs.
func scaled[T any](short, full T) T {
	if stress() {
		return full
	}
	return short
}

var layouts = []pool.Layout{pool.Legacy, pool.Zset}

// eachLayout runs fn for both layouts, side by side.
func eachLayout(t *testing.T, fn func(t *testing.T, layout pool.Layout)) {
	t.Helper()
	t.Parallel()
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			fn(t, layout)
		})
	}
}

// pause lets time pass, where the passing of time is what is tested.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal("the test ended during a pause")
	}
}
