package redisproc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	sentinelCount = 3
	sentinelName  = "main"

	// failoverTimeout is short because a tied vote of the sentinels is repeated only after twice as long.
	failoverTimeout = 3 * time.Second
)

// SentinelConfig says how a watched master is made up.
type SentinelConfig struct {
	// DownAfter is how long the master may be silent before the sentinels elect another. Defaults to 1 s.
	DownAfter time.Duration

	// Server is how master and replica are started; Dir and Port must be empty.
	Server Config
}

// Sentinels are a master, its replica, and three sentinels that watch them under the name "main". Its methods
// may be called by several goroutines, but one change at a time.
type Sentinels struct {
	servers   []*Server
	sentinels []*Server
}

// StartSentinels runs them and returns when the replica is in step and all sentinels know of each other. The
// context bounds the start alone (30 s without a deadline).
func StartSentinels(ctx context.Context, cfg SentinelConfig) (*Sentinels, error) {
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	s := &Sentinels{}
	if err := s.start(ctx, cfg); err != nil {
		_ = s.Stop() // the first error says more
		return nil, err
	}
	return s, nil
}

func (s *Sentinels) start(ctx context.Context, cfg SentinelConfig) error {
	down := cfg.DownAfter
	if down == 0 {
		down = time.Second
	}
	server := cfg.Server
	server.Args = append([]string{"--repl-diskless-sync-delay", "0"}, cfg.Server.Args...)
	master, err := Start(ctx, server)
	if err != nil {
		return err
	}
	s.servers = append(s.servers, master)
	replica, err := Start(ctx, server)
	if err != nil {
		return err
	}
	s.servers = append(s.servers, replica)
	if err := replica.do(ctx, "replicaof", "127.0.0.1", master.port).Err(); err != nil {
		return fmt.Errorf("redisproc: making %s a replica: %w", replica.addr, err)
	}
	for range sentinelCount {
		sentinel, err := Start(ctx, Config{sentinel: fmt.Sprintf(
			"sentinel monitor %[1]s 127.0.0.1 %[2]d %[3]d\nsentinel down-after-milliseconds %[1]s %[4]d\nsentinel failover-timeout %[1]s %[5]d\n",
			sentinelName, master.port, sentinelCount/2+1, down.Milliseconds(), failoverTimeout.Milliseconds(),
		)})
		if err != nil {
			return err
		}
		s.sentinels = append(s.sentinels, sentinel)
		// Sentinels tell each other of a new master every 2 s, make an old one a replica after four times that,
		// and look at replicas every 10 s: too long for tests. Servers before 7.0 have no way to say so.
		_ = sentinel.do(ctx, "sentinel", "debug", "publish-period", 500, "info-period", 500).Err()
	}
	return s.AwaitWhole(ctx)
}

// Stop ends everything for good, the watchers first.
func (s *Sentinels) Stop() error { return stopAll(append(slices.Clone(s.sentinels), s.servers...)) }

// Name is what the sentinels call the master.
func (s *Sentinels) Name() string { return sentinelName }

// Addrs are the addresses of the sentinels.
func (s *Sentinels) Addrs() []string {
	addrs := make([]string, len(s.sentinels))
	for i, sentinel := range s.sentinels {
		addrs[i] = sentinel.addr
	}
	return addrs
}

// Servers are the two servers: the one that began as master, then the one that began as its replica.
func (s *Sentinels) Servers() []*Server { return slices.Clone(s.servers) }

// Master is the master in the eyes of all sentinels; while they do not agree there is none.
func (s *Sentinels) Master(ctx context.Context) (*Server, error) {
	addr := ""
	for _, sentinel := range s.sentinels {
		words, err := sentinel.do(ctx, "sentinel", "get-master-addr-by-name", sentinelName).StringSlice()
		if err != nil {
			return nil, fmt.Errorf("redisproc: asking a sentinel for the master: %w", err)
		}
		named := strings.Join(words, ":")
		if addr != "" && named != addr {
			return nil, fmt.Errorf("redisproc: the sentinels name %s and %s", addr, named)
		}
		addr = named
	}
	for _, server := range s.servers {
		if server.addr == addr {
			return server, nil
		}
	}
	return nil, fmt.Errorf("redisproc: the sentinels name %s, which is none of ours", addr)
}

// Failover has the sentinels make the replica master. They do not stop writes for it: what the old master takes
// in the meantime is lost. It returns when all name the new one.
func (s *Sentinels) Failover(ctx context.Context) error {
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	old, err := s.Master(ctx)
	if err != nil {
		return err
	}
	for {
		// They refuse while the last failover is not long over.
		if err := until(ctx, "the sentinels to agree to a failover", func() error {
			return s.sentinels[0].do(ctx, "sentinel", "failover", sentinelName).Err()
		}); err != nil {
			return err
		}
		// They give one up that takes too long, on a busy machine say, and do not begin again by themselves.
		try, cancel := context.WithTimeout(ctx, 2*failoverTimeout)
		err := s.AwaitOther(try, old)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// AwaitOther waits until all sentinels name another master, and that takes writes (30 s without a deadline).
func (s *Sentinels) AwaitOther(ctx context.Context, old *Server) error {
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	return until(ctx, "another master", func() error {
		master, err := s.Master(ctx)
		if err != nil {
			return err
		}
		if master == old {
			return fmt.Errorf("redisproc: %s is still the master", old.addr)
		}
		return master.isMaster(ctx)
	})
}

// AwaitWhole waits until both servers are up, the replica is in step, and every sentinel knows them and the other
// sentinels (30 s without a deadline).
func (s *Sentinels) AwaitWhole(ctx context.Context) error {
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	return until(ctx, "master, replica and sentinels to know each other", func() error {
		master, err := s.Master(ctx)
		if err != nil {
			return err
		}
		for _, server := range s.servers {
			if server == master {
				err = errors.Join(err, server.isMaster(ctx))
			} else {
				err = errors.Join(err, server.inStep(ctx))
			}
		}
		for _, sentinel := range s.sentinels {
			text, e := sentinel.do(ctx, "info", "sentinel").Text()
			if e == nil && !strings.Contains(text, fmt.Sprintf("status=ok,address=%s,slaves=1,sentinels=%d", master.addr, sentinelCount)) {
				e = fmt.Errorf("redisproc: a sentinel sees %q", text)
			}
			err = errors.Join(err, e)
		}
		return err
	})
}

// isMaster says why a server is none.
func (s *Server) isMaster(ctx context.Context) error {
	text, err := s.do(ctx, "info", "replication").Text()
	if err == nil && field(text, "role") != "master" {
		err = fmt.Errorf("redisproc: %s is no master", s.addr)
	}
	return err
}

// inStep says why a server is no replica that has its master's data and hears from it.
func (s *Server) inStep(ctx context.Context) error {
	text, err := s.do(ctx, "info", "replication").Text()
	if err == nil && (field(text, "role") != "slave" || field(text, "master_link_status") != "up") {
		err = fmt.Errorf("redisproc: %s is no replica in step", s.addr)
	}
	return err
}

// field reads a value of an INFO text.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
