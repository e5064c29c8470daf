package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/babelpool/babelpool/internal/chaos"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/pool"
)

const (
	chaosProcesses  = 3 // at least: a sound one, one that does not renew its leases, one whose clock is wrong
	chaosDuration   = 30 * time.Second
	chaosRate       = 2000
	chaosRetryAfter = 2 * time.Second
	chaosBackoff    = time.Second
	leastChaos      = 5 * time.Second // below it some fault would have no time

	// chaosDrain is how long the run may take to work everything off when the faults have stopped: several leases, and a
	// backlog on a slow machine.
	chaosDrain = 90 * time.Second
)

// chaosPlan is what -chaos asks for.
type chaosPlan struct{ seed uint64 }

// checkChaos fills in the defaults of a run with faults.
func (c *config) checkChaos(raw *rawFlags, given map[string]bool, fail func(string, ...any)) {
	if !raw.chaos {
		if given["seed"] {
			fail("-seed: %d is of -chaos runs", raw.seed)
		}
		return
	}
	c.chaos = &chaosPlan{seed: raw.seed}
	if raw.seed == 0 {
		c.chaos.seed = uint64(rand.Uint32()) + 1 // short enough to be typed again
	}
	for _, name := range []string{"redis", "sweep", "prefill"} {
		if given[name] {
			fail("-%s: does not go with -chaos, which has a server of its own and publishes all the time", name)
		}
	}
	if !given["duration"] && !given["messages"] {
		given["duration"], c.duration = true, chaosDuration
	}
	if !given["rate"] {
		c.rate = chaosRate
	}
	if !given["processes"] {
		c.processes = chaosProcesses
	}
	if !given["retry-after"] {
		c.retryAfter = chaosRetryAfter
	}
	if !given["backoff"] && c.layout == pool.Zset {
		c.backoff = chaosBackoff
	}
	if c.processes < chaosProcesses {
		fail("-processes: -chaos needs %d: one that is sound, one that renews no leases, one whose clock is wrong", chaosProcesses)
	}
	if c.rate == 0 {
		fail("-rate: -chaos needs one: faults are to meet messages all the time")
	} else if d := c.publishing(given["duration"]); d < leastChaos {
		fail("-duration: %s is less than %s, too short for every fault to happen", d.Round(time.Millisecond), leastChaos)
	}
}

// publishing is how long the publishing takes, with a rate.
func (c *config) publishing(byDuration bool) time.Duration {
	if byDuration {
		return c.duration
	}
	return time.Duration(float64(c.messages) / c.rate * float64(time.Second))
}

// openChaosServer starts a server that keeps its data, and the proxy in front of it.
func openChaosServer(ctx context.Context) (*server, error) {
	proc, err := redisproc.Start(ctx, redisproc.Config{AppendOnly: true, AppendFsync: "always"})
	if errors.Is(err, redisproc.ErrNotInstalled) {
		return nil, errors.New("-chaos: there is no redis-server on PATH to start and kill")
	}
	if err != nil {
		return nil, err
	}
	s := &server{source: sourceOwn, label: "private redis-server", stop: proc.Stop, proc: proc}
	if err := s.connect(ctx, proc.URL()); err != nil {
		return nil, errors.Join(err, proc.Stop())
	}
	if s.proxy, err = faultproxy.Listen(proc.Addr()); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.address = "redis://" + s.proxy.Addr()
	if s.lossy, err = pool.OpenRedis(s.address); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// injector makes the injector of a run with faults.
func (t *trial) injector(kill func(draw uint64) bool) *chaos.Injector {
	replies := []string{"evalsha"} // reserving, settling, renewing; in the zset layout publishing too
	if t.cfg.layout == pool.Legacy {
		replies = []string{"evalsha", "evalsha", "rpush"}
	}
	return &chaos.Injector{
		Server: t.srv.proc, Proxy: t.srv.proxy, Replies: replies, Kill: kill, Counters: &t.books.faults,
		Do: func(ctx context.Context, words ...any) (any, error) { return t.srv.client.Do(ctx, words...).Result() },
	}
}

// inject carries faults out until ctx ends.
func (t *trial) inject(ctx context.Context) error {
	if t.cfg.chaos == nil {
		return nil
	}
	length := t.cfg.publishing(t.cfg.duration > 0)
	return t.injector(t.consumer.(*crew).kill).Run(ctx, chaos.NewSchedule(t.cfg.chaos.seed, length))
}
