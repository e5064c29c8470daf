package pool

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

const (
	defaultPoolSize = 128 // connections are made when needed, so a high bound costs nothing
	greetTimeout    = 5 * time.Second

	// When a network goes silent, every connection in the client's pool is dead, and each is found out by a call
	// that waits for its timeout, 5 s, in vain. By the end of the first such call the others have been idle for
	// longer than this, and the client throws them away unused. It hands them out in turn (PoolFIFO), or the ones
	// it rarely needs would be made anew all the time.
	defaultMaxIdle = 4 * time.Second
)

// OpenRedis makes a client that suits a pool from a URL such as redis://user:password@host:6379/0 or
// rediss://…: it honours context deadlines, so that dead connections are noticed; it tries a dial once and
// repeats no command, because the pool does that itself, with pauses and a log line; its pool is large enough
// for many queues, and gives up connections that nobody has used for 4 s, so that a network that went silent
// costs seconds and not minutes. Query parameters of the URL, such as ?pool_size=300, count before these settings where they
// set the pool's size, timeouts, or the idle time.
//
// The error never holds the URL, which may hold a password.
func OpenRedis(url string) (*redis.Client, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("pool: OpenRedis: the URL is not valid; it must look like redis://user:password@host:6379/0")
	}
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1
	o.DialerRetries = 1
	if o.PoolSize == 0 {
		o.PoolSize = defaultPoolSize
	}
	if o.ConnMaxIdleTime == 0 {
		o.ConnMaxIdleTime = defaultMaxIdle
	}
	o.PoolFIFO = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(o), nil
}

// greet asks the server once at start. What only a change of the configuration can mend ends Run; a server
// that is away does not, since the loops wait for it.
func (p *plan) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	info, err := p.Client.Info(ctx, "server").Result()
	if err != nil {
		err = lua.Classify("greeting", err)
		switch {
		case errors.Is(err, flow.ErrAuth), errors.Is(err, flow.ErrUntrusted):
			return fmt.Errorf("%w: %w", ErrRefused, err)
		case errors.Is(err, flow.ErrTransient):
			p.Logger.Warn("redis is not available yet", "error", err)
		}
		return nil // INFO is forbidden, or the server is away
	}
	if version := infoField(info, "redis_version"); version != "" && !atLeast62(version) {
		return fmt.Errorf("%w: its version is %q, the scripts need 6.2 (R5)", ErrRefused, version)
	}
	return nil
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// atLeast62 is true for a version it cannot read: other servers that speak the protocol have their own.
func atLeast62(version string) bool {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return true
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 != nil || err2 != nil || major > 6 || major == 6 && minor >= 2
}
