package lua

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

// topology is a way to reach one server: what kind it is, and a client of the library's own defaults that
// goes through a proxy.
type topology struct {
	args   []string
	client func(t *testing.T, server *redisproc.Server, proxy *faultproxy.Proxy) redis.UniversalClient
}

var topologies = map[string]topology{
	"single": {nil, func(_ *testing.T, _ *redisproc.Server, proxy *faultproxy.Proxy) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	}},
	"cluster": {[]string{"--cluster-enabled", "yes"}, clusterClient},
	"sentinel": {nil, func(t *testing.T, server *redisproc.Server, proxy *faultproxy.Proxy) redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "main", SentinelAddrs: []string{startSentinel(t, server)},
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == server.Addr() {
					addr = proxy.Addr()
				}
				var d net.Dialer
				return d.DialContext(ctx, network, addr)
			},
		})
	}},
}

// clusterClient makes a cluster of the one node and leads all slots to the proxy.
func clusterClient(t *testing.T, server *redisproc.Server, proxy *faultproxy.Proxy) redis.UniversalClient {
	t.Helper()
	admin := testredis.Client(t, server.URL())
	if err := admin.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatalf("giving the node all slots: %v", err)
	}
	testredis.Eventually(t, 10*time.Second, func() bool {
		return strings.Contains(admin.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	}, "the one-node cluster serves")
	return redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: proxy.Addr()}}}}, nil
		},
	})
}

// startSentinel runs a sentinel that watches the server and returns its address. It wants a configuration file,
// so redisproc cannot run it.
func startSentinel(t *testing.T, server *redisproc.Server) string {
	t.Helper()
	host, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for try := 1; ; try++ {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		_ = l.Close()
		_, own, _ := net.SplitHostPort(addr)
		config := filepath.Join(dir, own+".conf")
		text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor main %s %s 1\n", own, dir, host, port)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		// The context ends before the test binary is killed for taking too long.
		ctx := context.Background()
		if deadline, ok := t.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-5*time.Second))
			t.Cleanup(cancel)
		}
		cmd := exec.CommandContext(ctx, "redis-server", config, "--sentinel")
		if err := cmd.Start(); err != nil {
			t.Fatalf("starting a sentinel: %v", err)
		}
		exited := make(chan struct{})
		go func() {
			_ = cmd.Wait() // always "killed", or that the port was taken
			close(exited)
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-exited
		})
		client := redis.NewSentinelClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
		t.Cleanup(func() { _ = client.Close() })
		up := false
		testredis.Eventually(t, 10*time.Second, func() bool {
			select {
			case <-exited:
				return true
			default:
			}
			up = client.GetMasterAddrByName(t.Context(), "main").Err() == nil
			return up
		}, "the sentinel knows the server")
		if up {
			return addr
		}
		if try == 5 {
			t.Fatal("no sentinel stays up")
		}
	}
}

// once is a call whose reply gets lost: how its command is known at the proxy, and what shows that it took
// effect exactly once.
type once struct {
	name  string
	match string
	call  func(ctx context.Context, q *queue, held []*flow.Reservation) error
	check func(q *queue, s state) bool
}

func onceCalls(layout flow.Layout) []once {
	script := func(legacy, zset *script) string {
		if layout == flow.Legacy {
			return legacy.hash
		}
		return zset.hash
	}
	calls := []once{
		{"publish", "rpush", busyPublish, func(_ *queue, s state) bool { return len(s.Ready) == 4 }},
		{"reserve", script(legacyReserve, zsetReserve), func(ctx context.Context, q *queue, _ []*flow.Reservation) error {
			_, err := q.Reserve(ctx, everything(1))
			return err
		}, func(q *queue, s state) bool { return len(s.Ready) == 2 && len(s.Processing)+len(s.Reserved) == 4 }},
		{"settle", script(legacySettle, zsetSettle), func(ctx context.Context, q *queue, held []*flow.Reservation) error {
			_, err := q.Settle(ctx, []flow.Settlement{acks(held[0])[0], settlement(held[1], flow.DeadLetter, "d")})
			return err
		}, func(_ *queue, s state) bool { return len(s.DeadLetters) == 1 && len(s.Processing)+len(s.Reserved) == 1 }},
		{"hand back", script(legacyHandBack, zsetHandBack), busyHandBack,
			func(_ *queue, s state) bool { return len(s.Ready) == 6 }},
		{"renew", renewLeases.hash, busyRenew,
			func(_ *queue, s state) bool { return append(s.Leases, s.Reserved...)[0].Score == start+10+lease }},
		{"publish in a transaction", "exec", func(ctx context.Context, q *queue, _ []*flow.Reservation) error {
			_, err := q.calls.TxPipelined(ctx, func(p redis.Pipeliner) error {
				return q.Store.(publisher).PublishIn(ctx, p, []string{"new"})
			})
			return Classify("publish in a transaction", err)
		}, func(_ *queue, s state) bool { return len(s.Ready) == 4 }},
	}
	if layout == flow.Zset {
		calls[0].match = zsetPublish.hash
		calls = append(calls, once{"publish delayed", zsetDelay.hash, func(ctx context.Context, q *queue, _ []*flow.Reservation) error {
			_, err := q.Store.(*Zset).PublishDelayed(ctx, []Delayed{{1, "later"}})
			return err
		}, func(_ *queue, s state) bool { return len(s.Delayed) == 1 }})
	}
	return calls
}

// A command whose reply got lost is not sent again by the client library, whatever its kind and its settings:
// a second reserve would hide the messages of the first, a second publish would double them. The caller hears
// that it may have been carried out (M9).
func TestLostReplyIsNotResent(t *testing.T) { // B03, R1
	t.Parallel()
	for name, topology := range topologies {
		for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
			t.Run(name+"/"+layout.String(), func(t *testing.T) {
				t.Parallel()
				server := testredis.Server(t, redisproc.Config{Args: topology.args})
				proxy := faultproxy.Start(t, server.Addr())
				client := topology.client(t, server, proxy)
				t.Cleanup(func() {
					if err := client.Close(); err != nil {
						t.Errorf("closing the client: %v", err)
					}
				})
				b := testredis.Backend{
					Name: "redis", Addr: server.Addr(), URL: server.URL(), Client: testredis.Client(t, server.URL()),
					Prefix: testredis.Prefix(t), Real: true, Server: server,
				}
				direct := newQueue(t, b, layout, func(o *Options) {
					keys, err := NewKeys(layout, b.Prefix, "{orders}", "")
					if err != nil {
						t.Fatal(err)
					}
					o.Keys = keys
				})
				proxied := direct.with(t, func(o *Options) { o.Client = client })
				cycle(t, proxied) // connects, and makes the scripts known
				for _, c := range onceCalls(layout) {
					lostReply(t, c, direct, proxied, proxy)
				}
			})
		}
	}
}

func lostReply(t *testing.T, c once, direct, proxied *queue, proxy *faultproxy.Proxy) {
	t.Helper()
	direct.clear(t)
	direct.publish(t, bodies(0, 6)...)
	held := direct.take(t, 3)
	direct.pass(10)
	proxy.ResetCounts()
	swallow := proxy.SwallowNext(c.match)
	err := c.call(t.Context(), proxied, held)
	select {
	case <-swallow.Done():
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: no reply was swallowed, %v", c.name, err)
	}
	if !errors.Is(err, flow.ErrTransient) || !errors.Is(err, flow.ErrAmbiguous) {
		t.Errorf("%s: %v, want ErrTransient and ErrAmbiguous", c.name, err)
	}
	if n := proxy.Count(c.match); n != 1 {
		t.Errorf("%s: the server saw the command %d times, want once", c.name, n)
	}
	if s := direct.state(t); !c.check(direct, s) {
		t.Errorf("%s: the effect is not that of one call: %+v", c.name, s)
	}
}
