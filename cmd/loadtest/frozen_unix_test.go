//go:build unix

package main

import (
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

// TestAFrozenServerShows: what a stall costs is in the latency, which counts from when a message was due, and in the
// missed sends; a generator that waited for the server would show neither.
func TestAFrozenServerShows(t *testing.T) { // B53
	t.Parallel()
	const frozen = time.Second
	server := testredis.Server(t, redisproc.Config{})
	client := testredis.Client(t, server.URL())
	var o outcome
	var g errgroup.Group
	g.Go(func() error {
		o = runCommand(t.Context(), t, "-rate 500 -duration 4s -redis "+server.URL())
		return nil
	})
	testredis.Eventually(t, 20*time.Second, func() bool {
		return client.DBSize(t.Context()).Val() > 0
	}, "the test's first message")
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(frozen, func() {
		if err := server.Thaw(); err != nil {
			t.Error(err)
		}
	})
	_ = g.Wait() // never fails
	r := o.report
	if o.code != exitBalanced || !r.Reconciled || r.Lost != 0 {
		t.Fatalf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
	}
	// A quarter of the messages were due while the server was frozen, evenly spread over the second.
	if r.LatencyMS == nil || r.LatencyMS.P99 < 900 || r.LatencyMS.P90 < 500 || r.LatencyMS.Max < 950 {
		t.Errorf("latencies %+v, want those of messages that waited for up to a second", r.LatencyMS)
	}
	if r.MissedSends == nil || *r.MissedSends < 400 {
		t.Errorf("missed sends: %v, want about 500", r.MissedSends)
	}
}
