package testredis

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/babelpool/babelpool/internal/redisproc"
)

const (
	envRequire = "BQ_REQUIRE_REDIS"
	envURL     = "BQ_REDIS_URL"
)

// Server starts a real server for this test alone and stops it when the test ends. Without
// redis-server the test skips, or fails under BQ_REQUIRE_REDIS=1. BQ_REDIS_URL has no say here: what
// these tests do to a server nobody wants done to theirs.
func Server(t testing.TB, cfg redisproc.Config) *redisproc.Server {
	t.Helper()
	s, err := redisproc.Start(context.Background(), cfg)
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping the test's server: %v", err)
		}
	})
	return s
}

// shared is the one server of this test binary. Its start is tried once; every test that wants it
// hears of a failure.
var shared struct {
	once   sync.Once
	server *redisproc.Server
	err    error
}

// Shared returns the server that all tests of this binary share, started by the first that asks. It
// is the one at BQ_REDIS_URL when that is set. Tests on it run in parallel: keep to Prefix, and do
// not flush, kill, freeze or reconfigure it. Main stops it.
func Shared(t testing.TB) *redisproc.Server {
	t.Helper()
	shared.once.Do(func() {
		if url := os.Getenv(envURL); url != "" {
			shared.server, shared.err = redisproc.Attach(context.Background(), url)
			return
		}
		shared.server, shared.err = redisproc.Start(context.Background(), redisproc.Config{})
	})
	if shared.err != nil {
		unavailable(t, shared.err)
	}
	return shared.server
}

// stopShared ends the shared server if one was started.
func stopShared() error {
	if shared.server == nil {
		return nil
	}
	return shared.server.Stop()
}

// Require ends the test the way Server does when there is no redis-server, for tests that start one
// by other means.
func Require(t testing.TB) {
	t.Helper()
	if err := redisproc.Installed(); err != nil {
		unavailable(t, err)
	}
}

// unavailable ends the test: a missing binary is a reason to skip, unless that is forbidden;
// anything else is a failure.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, redisproc.ErrNotInstalled) {
		t.Fatalf("starting a Redis server: %v", err)
	}
	Missing(t, "this test needs a real server: "+err.Error())
}

// Missing ends a test that the machine has not what it takes for: a skip, or a failure where BQ_REQUIRE_REDIS=1 allows none.
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(envRequire) == "1" {
		t.Fatalf("%s, and %s=1 does not allow to skip", why, envRequire)
	}
	t.Skipf("%s", why)
}
