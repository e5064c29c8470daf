package testredis

import (
	"context"
	"testing"

	"github.com/babelpool/babelpool/internal/redisproc"
)

// Cluster starts a cluster for this test alone and stops it when the test ends. Without redis-server it does as
// Server does.
func Cluster(t testing.TB, cfg redisproc.ClusterConfig) *redisproc.Cluster {
	t.Helper()
	c, err := redisproc.StartCluster(context.Background(), cfg)
	return stopped(t, c, err)
}

// Sentinels starts a master, its replica and three sentinels for this test alone and stops them when the test
// ends. Without redis-server it does as Server does.
func Sentinels(t testing.TB, cfg redisproc.SentinelConfig) *redisproc.Sentinels {
	t.Helper()
	s, err := redisproc.StartSentinels(context.Background(), cfg)
	return stopped(t, s, err)
}

func stopped[T interface{ Stop() error }](t testing.TB, s T, err error) T {
	t.Helper()
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping the test's servers: %v", err)
		}
	})
	return s
}
