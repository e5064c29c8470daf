package faulttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/shard"
)

const shardCount = 12

// sharded is a sharded queue, as a rule on three masters without replicas: what a dead one holds is not served until it
// is back.
type sharded struct {
	*rig                       // of the first shard; its ledger is not used
	cluster *redisproc.Cluster // nil on a single server
	names   []string
	open    func() redis.UniversalClient

	mu      sync.Mutex
	certain map[string]bool // meta.id of what is stored for certain
	starts  map[string]int  // by meta.id
	by      map[string]int  // starts, by shard
}

func newSharded(t *testing.T, layout pool.Layout) *sharded {
	t.Helper()
	cluster := testredis.Cluster(t, redisproc.ClusterConfig{Server: redisproc.Config{
		AppendOnly: true, AppendFsync: "always", Args: []string{"--cluster-require-full-coverage", "no"},
	}})
	s := newShardedBy(t, layout, func() redis.UniversalClient {
		return closing(t, redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: cluster.Addrs(), ContextTimeoutEnabled: true, PoolSize: 2 * shardCount,
		}))
	}, shardCount)
	s.cluster = cluster
	return s
}

func newShardedBy(t *testing.T, layout pool.Layout, open func() redis.UniversalClient, n int) *sharded {
	t.Helper()
	names, err := shard.Names("orders", n)
	must(t, err)
	return &sharded{
		rig: newRigBy(t, layout, open(), names[0]), names: names, open: open,
		certain: map[string]bool{}, starts: map[string]int{}, by: map[string]int{},
	}
}

// publisher makes one for n shards.
func (s *sharded) publisher(n int) *shard.Publisher {
	s.t.Helper()
	p, err := shard.New(shard.Config{
		Config: publisher.Config{Client: s.open(), Queue: "orders", Layout: s.layout, KeyPrefix: s.prefix}, Shards: n,
	})
	must(s.t, err)
	return p
}

// fill puts n messages in each of some shards.
func (s *sharded) fill(names []string, n int) {
	s.t.Helper()
	for _, name := range names {
		one, err := publisher.New(publisher.Config{Client: s.control, Queue: name, Layout: s.layout, KeyPrefix: s.prefix})
		must(s.t, err)
		results, err := one.PublishBatch(s.t.Context(), messages(n))
		must(s.t, err)
		s.note(results)
	}
}

// messages are n messages that a handler knows.
func messages(n int) []publisher.Message {
	all := make([]publisher.Message, n)
	for i := range all {
		all[i].URN = testURN
	}
	return all
}

// note keeps the ids of what is stored for certain.
func (s *sharded) note(results []publisher.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range results {
		if r.Err == nil {
			s.certain[r.ID] = true
		}
	}
}

// consume runs a pool on the shards.
func (s *sharded) consume(cfg pool.Config, work time.Duration, names ...[]string) *run {
	s.t.Helper()
	cfg.Client = s.open()
	cfg.Queues = shard.Queues(pool.Queue{}, names...)
	cfg.Handler = delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
		s.mu.Lock()
		s.starts[d.Meta.ID]++
		s.by[d.Queue]++
		s.mu.Unlock()
		return retry.Sleep(ctx, work)
	})
	return s.start(cfg)
}

// servedBy are the shards of which a server is the master.
func (s *sharded) servedBy(server *redisproc.Server) (mine, others []string) {
	s.t.Helper()
	for _, name := range s.names {
		var owner *redisproc.Server
		testredis.Eventually(s.t, patience, func() (agreed bool) { // a node that is slow may be thought dead for a moment
			var err error
			owner, err = s.cluster.Owner(s.t.Context(), lua.Slot(name))
			return err == nil
		}, "the nodes agree on the master of %s", name)
		if owner == server {
			mine = append(mine, name)
		} else {
			others = append(others, name)
		}
	}
	return mine, others
}

// startedIn is the number of starts in some shards.
func (s *sharded) startedIn(names []string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		n += s.by[name]
	}
	return n
}

// rate is the starts a second in some shards, over a time.
func (s *sharded) rate(names []string, over time.Duration) float64 {
	s.t.Helper()
	before, begun := s.startedIn(names), time.Now()
	pause(s.t, over)
	return float64(s.startedIn(names)-before) / time.Since(begun).Seconds()
}

// unhandled is how many certain messages no handler has seen.
func (s *sharded) unhandled() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.certain {
		if s.starts[id] == 0 {
			n++
		}
	}
	return n
}

// again is how many messages were handled more than once.
func (s *sharded) again() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, starts := range s.starts {
		if starts > 1 {
			n++
		}
	}
	return n
}

// awaitNothingLeft waits until every certain message was handled and no queue of the pool holds anything.
func (s *sharded) awaitNothingLeft(p *run) {
	s.t.Helper()
	var left pool.QueueDepth
	testredis.Eventually(s.t, patience, func() bool {
		depths, err := p.Depths(s.t.Context())
		left = shard.SumDepths("orders", depths, queueNames(depths))
		return err == nil && s.unhandled() == 0 && left.Ready+left.InFlight+left.Delayed == 0
	}, "every message is handled")
	if left.DeadLetters != 0 {
		s.t.Errorf("%d dead letters", left.DeadLetters)
	}
}

func queueNames(depths []pool.QueueDepth) (names []string) {
	for _, d := range depths {
		names = append(names, d.Name)
	}
	return names
}

// masterOutages are those of one master, as the servers behind a cluster have them.
var masterOutages = map[string]struct{ strike, mend func(*redisproc.Server) error }{
	"killed": {(*redisproc.Server).Kill, func(s *redisproc.Server) error { return s.Restart(context.Background()) }},
	"frozen": {(*redisproc.Server).Freeze, (*redisproc.Server).Thaw},
}

// TestAShardsMasterIsAway takes one master of three away under a backlog in all shards: the shards of the others go on at
// no less than their speed, publishers tell which messages are stored, and when the master is back nothing is lost.
func TestAShardsMasterIsAway(t *testing.T) { // R1, R3
	for name, outage := range masterOutages {
		t.Run(name, func(t *testing.T) {
			eachLayout(t, func(t *testing.T, layout pool.Layout) {
				s := newSharded(t, layout)
				s.fill(s.names, 1500)
				p := s.consume(pool.Config{Concurrency: 24, Prefetch: 240, RetryAfter: 8 * time.Second}, 10*time.Millisecond, s.names)
				victim := s.cluster.Nodes()[1]
				mine, others := s.servedBy(victim)
				if len(mine) != shardCount/3 {
					t.Fatalf("one master of three has %d of %d shards", len(mine), shardCount)
				}
				testredis.Eventually(t, patience, func() bool { return s.startedIn(mine) > 100 }, "it flows")
				before := s.rate(others, 700*time.Millisecond)
				must(t, outage.strike(victim))
				after, later := s.rate(others, time.Second), s.rate(others, 2*time.Second)
				t.Logf("starts a second in the others' shards: %.0f before, %.0f and %.0f after", before, after, later)
				if min(after, later) < 0.5*before { // nothing would be 0; the machine may be busy
					t.Errorf("the others' shards slowed down: %.0f starts a second before, %.0f and %.0f after", before, after, later)
				}
				s.publishAround(mine, others)
				must(t, outage.mend(victim))
				s.awaitNothingLeft(p)
				if again := s.again(); again > 240 {
					t.Errorf("%d messages handled again, more than a pool can hold", again)
				}
				p.stopClean()
			})
		})
	}
}

// publishAround publishes to all shards while some are away.
func (s *sharded) publishAround(away, others []string) {
	s.t.Helper()
	results, err := s.publisher(shardCount).PublishBatch(s.t.Context(), messages(256*shardCount))
	var failed *shard.BatchError
	if !errors.As(err, &failed) || len(failed.Shards) != len(away) || failed.Stored != 256*len(others) {
		s.t.Errorf("a batch while %d shards are away: %v", len(away), err)
	}
	s.note(results)
}

// TestAnIdleShardsMasterIsAway takes the master away while all shards are idle: what its reservers hold for calls that
// nobody answers must not be missing when the others get work.
func TestAnIdleShardsMasterIsAway(t *testing.T) { // R1, R3
	for name, outage := range masterOutages {
		t.Run(name, func(t *testing.T) {
			eachLayout(t, func(t *testing.T, layout pool.Layout) {
				const workers, work = 64, 100 * time.Millisecond
				s := newSharded(t, layout)
				p := s.consume(pool.Config{Concurrency: workers, RetryAfter: 8 * time.Second}, work, s.names)
				testredis.Eventually(t, patience, func() bool { return len(p.Stats().Queues) == shardCount }, "the pool runs")
				victim := s.cluster.Nodes()[1]
				mine, others := s.servedBy(victim)
				must(t, outage.strike(victim))
				testredis.Eventually(t, patience, func() bool { return p.logs.count("reserving is held up") == len(mine) }, "it is noticed")
				s.fill(others, 250)
				pause(t, 500*time.Millisecond)
				rate, most := s.rate(others, 1500*time.Millisecond), workers/work.Seconds()
				t.Logf("%.0f starts a second of %.0f, %d messages held", rate, most, p.Stats().Held)
				if rate < 0.6*most {
					t.Errorf("the others' shards have %.0f starts a second; %d workers can do %.0f", rate, workers, most)
				}
				must(t, outage.mend(victim))
				s.awaitNothingLeft(p)
				p.stopClean()
			})
		})
	}
}

// TestNumberOfShardsChanges under load: first every pool consumes the old shards and the new, then producers go over, and
// when the old shards are empty they are left out. Nothing is lost, or handled twice.
func TestNumberOfShardsChanges(t *testing.T) { // R1
	for name, n := range map[string][2]int{"from 4 to 12": {4, 12}, "from 12 to 4": {12, 4}, "from 1 to 3": {1, 3}} {
		t.Run(name, func(t *testing.T) {
			eachLayout(t, func(t *testing.T, layout pool.Layout) {
				server := testredis.Server(t, redisproc.Config{})
				s := newShardedBy(t, layout, func() redis.UniversalClient { return testredis.Client(t, server.URL()) }, 1)
				before, after := s.publisher(n[0]), s.publisher(n[1])
				cfg := pool.Config{Concurrency: 16, RetryAfter: 30 * time.Second}
				work := 5 * time.Millisecond

				first := s.consume(cfg, work, before.Names())
				s.publish(before, 500)
				union := s.consume(cfg, work, before.Names(), after.Names()) // every pool, before the first producer
				first.stopClean()
				s.publish(before, 500) // a producer that is late
				s.publish(after, 500)
				s.publish(before, 500)
				s.publish(after, 500)
				old := left(before.Names(), after.Names())
				testredis.Eventually(t, patience, func() bool {
					depths, err := union.Depths(t.Context())
					d := shard.SumDepths("old", depths, old)
					return err == nil && d.Ready+d.InFlight+d.Delayed == 0
				}, "the old shards are empty")
				last := s.consume(cfg, work, after.Names())
				union.stopClean()
				s.publish(after, 500)
				s.awaitNothingLeft(last)
				last.stopClean()
				if s.again() != 0 || len(s.certain) != 3000 {
					t.Errorf("%d of %d messages handled again", s.again(), len(s.certain))
				}
			})
		})
	}
}

// left are the names that are not among the new ones.
func left(old, now []string) []string {
	return slices.DeleteFunc(slices.Clone(old), func(name string) bool { return slices.Contains(now, name) })
}

// publish publishes n messages, some alone and some in batches.
func (s *sharded) publish(p *shard.Publisher, n int) {
	s.t.Helper()
	for range n / 10 {
		id, err := p.Publish(s.t.Context(), testURN, nil)
		must(s.t, err)
		s.note([]publisher.Result{{ID: id}})
	}
	results, err := p.PublishBatch(s.t.Context(), messages(n-n/10))
	must(s.t, err)
	s.note(results)
}
