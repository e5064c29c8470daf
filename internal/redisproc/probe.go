package redisproc

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// probeTimeout bounds one question to a server. A busy or frozen one does not answer at all.
const probeTimeout = 2 * time.Second

// probe asks a server a few questions over one connection, each sent once.
type probe struct{ client *redis.Client }

func newProbe(opts *redis.Options) probe {
	opts.PoolSize = 1
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = probeTimeout, probeTimeout, probeTimeout
	opts.ContextTimeoutEnabled = true
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return probe{client: redis.NewClient(opts)}
}

func (p probe) close() { _ = p.client.Close() } // its one connection is gone either way

// info returns one section of INFO as name and value.
func (p probe) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := p.client.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("redisproc: INFO %s: %w", section, err)
	}
	values := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			values[name] = value
		}
	}
	return values, nil
}

// answers tells whether the process with this id serves commands. PING alone cannot: while a server
// loads its data it answers LOADING, and when our process lost its port to another server, that one
// says PONG.
func answers(ctx context.Context, addr string, p *process) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// Dialled by hand first, because a failed dial leaves a goroutine of the client behind that
	// tries again a second later.
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp4", addr)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent on it

	probe := newProbe(&redis.Options{Addr: addr})
	defer probe.close()
	if err := probe.client.Ping(ctx).Err(); err != nil {
		// With a password among the arguments this is as far as the probe can get; the log then
		// says whose answer it was.
		return redis.HasErrorPrefix(err, "NOAUTH") && strings.Contains(p.logTail(), "Ready to accept connections")
	}
	info, err := probe.info(ctx, "server")
	return err == nil && info["process_id"] == strconv.Itoa(p.pid())
}

// infoCPU asks the server for the CPU time it has used.
func (p probe) infoCPU(ctx context.Context) (time.Duration, error) {
	info, err := p.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info[name], 64)
		if err != nil {
			return 0, fmt.Errorf("redisproc: INFO cpu: %s: %w", name, err)
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total, nil
}
