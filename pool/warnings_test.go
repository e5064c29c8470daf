package pool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// TestWarnings covers what is allowed but rarely meant: told once, at start.
func TestWarnings(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	for name, row := range map[string]struct {
		change func(t *testing.T, addr string, c *pool.Config)
		want   string
	}{
		"HandlerTimeout":     {func(_ *testing.T, _ string, c *pool.Config) { c.HandlerTimeout = -1 }, "HandlerTimeout is off"},
		"RetryAfterDisabled": {func(_ *testing.T, _ string, c *pool.Config) { c.RetryAfterDisabled = true }, "RetryAfterDisabled: what a dead process held stays in flight"},
		"Leave, no lease":    {func(_ *testing.T, _ string, c *pool.Config) { c.RetryAfterDisabled = true }, "RetryAfterDisabled with LegacyRetry Leave: a failed message stays in flight"},
		"FailureDelay":       {func(_ *testing.T, _ string, c *pool.Config) { c.FailureDelay = ptr(1.0) }, "have no effect in legacy queues"},
		"BackoffPolicy":      {func(_ *testing.T, _ string, c *pool.Config) { c.BackoffPolicy = func(int64) float64 { return 1 } }, "have no effect in legacy queues"},
		"Backoff":            {func(_ *testing.T, _ string, c *pool.Config) { c.Backoff.Base = time.Second }, "have no effect in legacy queues"},
		"no deadlines": {func(t *testing.T, addr string, c *pool.Config) {
			c.Client = closing(t, redis.NewClient(&redis.Options{Addr: addr}))
		}, "the client ignores context deadlines"},
		"no ReadTimeout": {func(t *testing.T, addr string, c *pool.Config) {
			c.Client = closing(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, ReadTimeout: -1}))
		}, "the client has no ReadTimeout"},
		"idle for long": {func(t *testing.T, addr string, c *pool.Config) {
			c.Client = closing(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}))
		}, "the client keeps idle connections for long"},
		"idle without end": {func(t *testing.T, addr string, c *pool.Config) {
			c.Client = closing(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, ConnMaxIdleTime: -1}))
		}, "the client keeps idle connections for long"},
		"nothing":           {func(*testing.T, string, *pool.Config) {}, ""},
		"zset with a delay": {func(_ *testing.T, _ string, c *pool.Config) { c.Layout, c.FailureDelay = pool.Zset, ptr(1.0) }, ""},
		"no lease, requeued": {func(_ *testing.T, _ string, c *pool.Config) {
			c.RetryAfterDisabled, c.LegacyRetry, c.MaxAttempts = true, pool.Requeue, 2
		}, "RetryAfterDisabled: what"},
		"a cluster's client": {func(t *testing.T, _ string, c *pool.Config) {
			c.Client = closing(t, redis.NewClusterClient(&redis.ClusterOptions{
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return nil, errors.New("none") },
			}))
			c.Queues = []pool.Queue{{Name: "{orders}"}}
		}, "the client ignores context deadlines"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, testredis.Backend{Client: testredis.Client(t, mini.Addr())}, pool.Legacy)
			cfg := r.config(function(ackAll))
			cfg.Client = open(t, "redis://"+mini.Addr())
			row.change(t, mini.Addr(), &cfg)
			p := r.start(cfg)
			testredis.Eventually(t, patience, func() bool { return len(r.logs.matching("INFO consuming")) == 1 }, "it has started")
			p.stopped()
			warnings, found := r.logs.matching("WARN "), r.logs.matching("WARN ", row.want)
			switch {
			case row.want == "" && len(warnings) > 0:
				t.Errorf("%q", warnings)
			case row.want != "" && len(found) != 1:
				t.Errorf("%q, want one with %q", warnings, row.want)
			}
		})
	}
}
