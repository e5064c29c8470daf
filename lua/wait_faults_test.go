package lua

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

// The wait's connection is lost, its reply is lost, its server is gone: an error each time, and the next wait
// connects anew.
func TestWaitSurvivesItsConnection(t *testing.T) { // B15
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, proxy *faultproxy.Proxy) {
		ended := q.waiting(t.Context())
		q.blocked(t, 1)
		proxy.Cut()
		if w := await(t, ended); !errors.Is(w.err, flow.ErrTransient) {
			t.Errorf("cut: %v, want ErrTransient", w.err)
		}
		q.publish(t, bodies(0, 9)...) // from here on a wait that works does not block
		proxy.SwallowNext("CLIENT ID")
		if w := await(t, q.waiting(t.Context())); !errors.Is(w.err, flow.ErrTransient) {
			t.Errorf("no connection number: %v, want ErrTransient", w.err)
		}
		if w := await(t, q.waiting(t.Context())); w.err != nil {
			t.Errorf("afterwards: %v", w.err)
		}
		q.Close()
		proxy.Refuse(true)
		proxy.Cut()
		if w := await(t, q.waiting(t.Context())); !errors.Is(w.err, flow.ErrTransient) {
			t.Errorf("refused: %v, want ErrTransient", w.err)
		}
		proxy.Refuse(false)
		if w := await(t, q.waiting(t.Context())); w.err != nil {
			t.Errorf("afterwards: %v", w.err)
		}
	})
}

// Errors that only somebody can mend name the key (B07); a server that turns into a replica unblocks its
// clients with an error, which is transient (B22).
func TestWaitErrors(t *testing.T) { // B07, B22
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, _ *faultproxy.Proxy) {
		key := q.keys.Ready
		if q.layout == flow.Zset {
			key = q.keys.Notify
		}
		q.do(t, "SET", key, "somebody else's")
		if _, err := q.Wait(t.Context()); !errors.Is(err, flow.ErrPermanent) || !strings.Contains(err.Error(), key) {
			t.Errorf("wrong type: %v, want ErrPermanent and %s", err, key)
		}
		q.do(t, "DEL", key)

		ended := q.waiting(t.Context())
		q.blocked(t, 1)
		q.do(t, "REPLICAOF", "127.0.0.1", "1")
		if w := await(t, ended); !errors.Is(w.err, flow.ErrTransient) {
			t.Errorf("replica: %v, want ErrTransient", w.err)
		}
		testredis.Eventually(t, 5*time.Second, func() bool { // it may have closed connections of the pool
			return q.client.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err() == nil
		}, "the server is a master again")
		q.publish(t, body(1))
		if w := await(t, q.waiting(t.Context())); w.err != nil {
			t.Errorf("master again: %v", w.err)
		}
	})
}

// With rights for the blocking command taken away the wait says so; without rights for CLIENT it ends by itself.
func TestWaitUnderAccessRules(t *testing.T) { // B07, B44
	t.Parallel()
	eachOwn(t, func(t *testing.T, q *queue, proxy *faultproxy.Proxy) {
		as := func(user string, rules ...any) *queue {
			t.Helper()
			q.do(t, append([]any{"ACL", "SETUSER", user, "on", ">pw", "~*", "&*", "+@all"}, rules...)...)
			return q.with(t, func(o *Options) { o.Client = testredis.Client(t, "redis://"+user+":pw@"+proxy.Addr()) })
		}
		if _, err := as("blockless", "-blmove", "-blpop").Wait(t.Context()); !errors.Is(err, flow.ErrPermanent) || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("%v, want ErrPermanent and NOPERM", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := []<-chan waited{
			as("nameless", "-client|id").waiting(ctx), as("patient", "-client|unblock").waiting(ctx),
		}
		q.blocked(t, 2)
		cancel()
		for _, e := range ended {
			if w := await(t, e); w.err != nil || w.took > 3*time.Second {
				t.Errorf("%+v, want an end within its second", w)
			}
		}
	})
}

// On a cluster the wait blocks on the node that serves the key; with a client it cannot look into, on a
// connection of the pool.
func TestWaitOnOtherClients(t *testing.T) { // B17
	t.Parallel()
	for name, wrap := range map[string]func(t *testing.T, s *redisproc.Server, p *faultproxy.Proxy) redis.UniversalClient{
		"cluster": clusterClient,
		"wrapped": func(t *testing.T, _ *redisproc.Server, p *faultproxy.Proxy) redis.UniversalClient {
			return struct{ redis.UniversalClient }{redis.NewClient(&redis.Options{Addr: p.Addr()})}
		},
	} {
		for _, layout := range []flow.Layout{flow.Legacy, flow.Zset} {
			t.Run(name+"/"+layout.String(), func(t *testing.T) {
				t.Parallel()
				server := testredis.Server(t, redisproc.Config{Args: []string{"--cluster-enabled", map[string]string{"cluster": "yes", "wrapped": "no"}[name]}})
				proxy := faultproxy.Start(t, server.Addr())
				client := wrap(t, server, proxy)
				t.Cleanup(func() { _ = client.Close() })
				b := testredis.Backend{Client: testredis.Client(t, server.URL()), Prefix: testredis.Prefix(t)}
				direct := newQueue(t, b, layout, func(o *Options) {
					o.Keys, _ = NewKeys(layout, b.Prefix, "{orders}", "")
				})
				q := direct.with(t, func(o *Options) { o.Client = client })
				ended := q.waiting(t.Context())
				direct.blocked(t, 1)
				direct.publish(t, body(1))
				if w := await(t, ended); w.err != nil || w.tokens != map[flow.Layout]int{flow.Zset: 1}[layout] {
					t.Errorf("at a push: %+v", w)
				}
				direct.clear(t)
				ctx, cancel := context.WithCancel(t.Context())
				ended = q.waiting(ctx)
				direct.blocked(t, 1)
				at := time.Now()
				cancel()
				limit := 3 * time.Second
				if name == "cluster" {
					limit = 500 * time.Millisecond // cut short
				}
				if w := await(t, ended); w.err != nil || time.Since(at) > limit {
					t.Errorf("at its end: %+v, after %v", w, time.Since(at))
				}
			})
		}
	}
}
