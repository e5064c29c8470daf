package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/pool"
)

// The sources of a server, as the report names them.
const (
	sourceOwn  = "redis-server" // a private one, started for this run
	sourceURL  = "url"          // somebody's, given by -redis or the environment
	sourceMini = "miniredis"    // in this process
)

const (
	greetTimeout = 5 * time.Second
	unknown      = "unknown"
)

// server is the Redis of a run.
type server struct {
	client  *redis.Client
	address string // URL; may hold a password
	source  string
	version string
	label   string // for people; never holds a password
	stop    func() error

	// With faults only. The address is then the proxy's, and client goes past it.
	proc  *redisproc.Server
	proxy *faultproxy.Proxy
	lossy *redis.Client // through the proxy
}

// publishing is the client to publish with.
func (s *server) publishing() *redis.Client {
	if s.lossy != nil {
		return s.lossy
	}
	return s.client
}

// openServer finds the server the flags ask for, or the embedded choice.
func openServer(ctx context.Context, cfg config, show *progress) (*server, error) {
	if cfg.chaos != nil {
		return openChaosServer(ctx)
	}
	switch cfg.redis {
	case miniRedis:
		return openMini()
	case "":
	default:
		s := &server{source: sourceURL, label: redacted(cfg.redis), stop: func() error { return nil }}
		if err := s.connect(ctx, cfg.redis); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.redisFlag, err)
		}
		return s, nil
	}
	proc, err := redisproc.Start(ctx, redisproc.Config{})
	if errors.Is(err, redisproc.ErrNotInstalled) && cfg.processes > 1 {
		return nil, fmt.Errorf("-processes: %d processes need a real Redis, and there is neither -redis nor a redis-server on PATH", cfg.processes)
	}
	if errors.Is(err, redisproc.ErrNotInstalled) {
		show.notef("no redis-server on PATH and no -redis: using miniredis in this process; its speed says nothing about Redis")
		return openMini()
	}
	if err != nil {
		return nil, err
	}
	s := &server{source: sourceOwn, label: "private redis-server", stop: proc.Stop}
	if err := s.connect(ctx, proc.URL()); err != nil {
		return nil, errors.Join(err, proc.Stop())
	}
	return s, nil
}

func openMini() (*server, error) {
	mini, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("miniredis: %w", err)
	}
	client, err := pool.OpenRedis("redis://" + mini.Addr())
	if err != nil {
		mini.Close()
		return nil, err
	}
	return &server{
		client: client, source: sourceMini, label: sourceMini, version: moduleVersion("github.com/alicebob/miniredis/v2"),
		stop: func() error { mini.Close(); return nil },
	}, nil
}

// connect opens the client and asks the server for its version. On error nothing is left open.
func (s *server) connect(ctx context.Context, address string) error {
	client, err := pool.OpenRedis(address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return errors.Join(fmt.Errorf("%s does not answer: %w", s.label, err), client.Close())
	}
	s.client, s.address = client, address
	s.version = unknown // INFO may be forbidden
	if info, err := client.InfoMap(ctx, "server").Result(); err == nil && info["Server"]["redis_version"] != "" {
		s.version = info["Server"]["redis_version"]
	}
	return nil
}

// close ends the client, and the server if it is this run's own.
func (s *server) close() error {
	var err error
	if s.lossy != nil {
		err = s.lossy.Close()
	}
	if s.proxy != nil {
		s.proxy.Close()
	}
	return errors.Join(err, s.client.Close(), s.stop())
}

// String names the server for people.
func (s *server) String() string {
	if s.source == sourceURL {
		return "Redis " + s.version + " at " + s.label
	}
	return s.label + " " + s.version
}

// cpu is the CPU time, user and system, that the server's process has used so far. ok is false where it is
// not known: miniredis shares this process, and INFO may be forbidden. INFO counts in microseconds; the
// kernel's table, the other source, in steps of 10 ms, which is too coarse for a run of 20,000 messages.
func (s *server) cpu(ctx context.Context) (used time.Duration, ok bool) {
	if s.source == sourceMini || s.proxy != nil { // a server that is started again counts from 0
		return 0, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), greetTimeout)
	defer cancel()
	info, err := s.client.InfoMap(ctx, "cpu").Result()
	if err != nil {
		return 0, false
	}
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info["CPU"][name], 64)
		if err != nil {
			return 0, false
		}
		used += time.Duration(seconds * float64(time.Second))
	}
	return used, true
}

// redacted is a URL without its password.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the given server"
	}
	return u.Redacted()
}

// moduleVersion is the version of a dependency that this program was built with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return strings.TrimPrefix(dep.Version, "v")
		}
	}
	return unknown
}
