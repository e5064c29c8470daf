package redisproc

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// slotCount is the number of slots of every cluster.
const slotCount = 16384

// ClusterConfig says what a cluster is made of. The zero value is three masters without replicas.
type ClusterConfig struct {
	// Replicas gives each master one replica.
	Replicas bool

	// NodeTimeout is how long a node may be silent before the others fail it over. Defaults to 1.5 s: less,
	// and a busy machine makes failovers of its own.
	NodeTimeout time.Duration

	// Server is how each node is started; Dir and Port must be empty.
	Server Config
}

// Cluster is a Redis Cluster of three masters. Its methods may be called by several goroutines, but one
// change at a time.
type Cluster struct {
	nodes []*Server
	ids   map[*Server]string
}

// manualFailover is a little longer than a failover by order may take before the nodes give it up, as they do when
// the replica has not caught up, on a busy machine, or the vote was tied.
const manualFailover = 6 * time.Second

// clusterMasters is the least that can elect a replica.
const clusterMasters = 3

// StartCluster runs a cluster and returns when every node knows all others and serves, and every replica is in
// step. The context bounds the start alone (30 s without a deadline).
func StartCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	c := &Cluster{ids: map[*Server]string{}}
	if err := c.start(ctx, cfg); err != nil {
		_ = c.Stop() // the first error says more
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, cfg ClusterConfig) error {
	timeout := cfg.NodeTimeout
	if timeout == 0 {
		timeout = 1500 * time.Millisecond
	}
	size := clusterMasters
	if cfg.Replicas {
		size *= 2
	}
	server := cfg.Server
	server.Args = append([]string{
		"--cluster-enabled", "yes",
		"--cluster-node-timeout", strconv.FormatInt(timeout.Milliseconds(), 10),
		"--cluster-replica-validity-factor", "0", // a replica may always stand for election
		"--cluster-allow-replica-migration", "no", // each keeps its master, whatever moves
		"--repl-diskless-sync-delay", "0",
	}, cfg.Server.Args...)
	for range size {
		s, err := Start(ctx, server)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, s)
		me, err := s.myself(ctx)
		if err != nil {
			return err
		}
		c.ids[s] = me.id
	}
	if err := c.join(ctx); err != nil {
		return err
	}
	return until(ctx, "the cluster to serve", func() error { return c.complete(ctx) })
}

// join makes the nodes one cluster: the first three take the slots, the others replicate them.
func (c *Cluster) join(ctx context.Context) error {
	first := c.nodes[0]
	for i, s := range c.nodes {
		if i < clusterMasters {
			from, to := i*slotCount/clusterMasters, (i+1)*slotCount/clusterMasters-1
			if err := s.do(ctx, "cluster", "addslotsrange", from, to).Err(); err != nil {
				return fmt.Errorf("redisproc: giving slots to %s: %w", s.addr, err)
			}
		}
		if i == 0 {
			continue
		}
		if err := s.do(ctx, "cluster", "meet", "127.0.0.1", first.port).Err(); err != nil {
			return fmt.Errorf("redisproc: %s joins the cluster: %w", s.addr, err)
		}
	}
	for i, s := range c.nodes[clusterMasters:] {
		// It must have heard of its master first.
		err := until(ctx, "a master to be known", func() error {
			return s.do(ctx, "cluster", "replicate", c.ids[c.nodes[i]]).Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// complete says what is missing until every live node sees the cluster whole.
func (c *Cluster) complete(ctx context.Context) error {
	for _, s := range alive(c.nodes) {
		text, err := s.do(ctx, "cluster", "info").Text()
		if err != nil {
			return err
		}
		if field(text, "cluster_state") != "ok" || field(text, "cluster_known_nodes") != strconv.Itoa(len(c.nodes)) {
			return fmt.Errorf("redisproc: %s does not see the whole cluster", s.addr)
		}
		me, err := s.myself(ctx)
		if err != nil {
			return err
		}
		if me.is("slave") {
			if err := s.inStep(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stop ends all nodes for good.
func (c *Cluster) Stop() error { return stopAll(c.nodes) }

// Addrs are the addresses of all nodes, masters first.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, s := range c.nodes {
		addrs[i] = s.addr
	}
	return addrs
}

// Nodes are all servers: those that began as masters, then their replicas in the same order.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

// Owner is the master of a slot, in the eyes of every live node; while they do not agree there is none.
func (c *Cluster) Owner(ctx context.Context, slot int) (*Server, error) {
	owner := ""
	for _, s := range alive(c.nodes) {
		all, err := s.nodes(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(n node) bool { return n.serves(slot) && !n.is("fail") })
		if i < 0 || owner != "" && all[i].id != owner {
			return nil, fmt.Errorf("redisproc: the nodes do not agree on the master of slot %d", slot)
		}
		owner = all[i].id
	}
	for _, s := range c.nodes {
		if c.ids[s] == owner {
			return s, nil
		}
	}
	return nil, fmt.Errorf("redisproc: slot %d has no master", slot)
}

// Replica is a live replica of a master.
func (c *Cluster) Replica(ctx context.Context, master *Server) (*Server, error) {
	for _, s := range alive(c.nodes) {
		me, err := s.myself(ctx)
		if err != nil {
			return nil, err
		}
		if me.is("slave") && me.master == c.ids[master] {
			return s, nil
		}
	}
	return nil, fmt.Errorf("redisproc: %s has no replica", master.addr)
}

// Failover makes a replica the master in agreement with the old one, which stops writes for it: nothing is
// lost. It returns when all live nodes agree.
func (c *Cluster) Failover(ctx context.Context, slot int) error {
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	old, err := c.Owner(ctx, slot)
	if err != nil {
		return err
	}
	replica, err := c.Replica(ctx, old)
	if err != nil {
		return err
	}
	for {
		if err := replica.do(ctx, "cluster", "failover").Err(); err != nil {
			return fmt.Errorf("redisproc: failover to %s: %w", replica.addr, err)
		}
		try, cancel := context.WithTimeout(ctx, manualFailover)
		err := c.AwaitOwner(try, slot, replica)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// AwaitOwner waits until all live nodes name this server as the master of a slot (30 s without a deadline).
func (c *Cluster) AwaitOwner(ctx context.Context, slot int, want *Server) error {
	return c.awaitOwner(ctx, slot, func(s *Server) bool { return s == want })
}

// AwaitOther waits until all live nodes name another master of a slot than the old one (30 s without a deadline).
func (c *Cluster) AwaitOther(ctx context.Context, slot int, old *Server) error {
	return c.awaitOwner(ctx, slot, func(s *Server) bool { return s != old })
}

func (c *Cluster) awaitOwner(ctx context.Context, slot int, wanted func(*Server) bool) error {
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	return until(ctx, "a new master", func() error {
		owner, err := c.Owner(ctx, slot)
		if err == nil && !wanted(owner) {
			err = fmt.Errorf("redisproc: slot %d is still with %s", slot, owner.addr)
		}
		return err
	})
}

// AwaitWhole waits until every node is up, sees the whole cluster and, if it is a replica, is in step (30 s
// without a deadline).
func (c *Cluster) AwaitWhole(ctx context.Context) error {
	ctx, cancel := withStartLimit(ctx)
	defer cancel()
	return until(ctx, "the cluster to be whole", func() error { return c.complete(ctx) })
}
