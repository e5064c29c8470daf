package publisher_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
)

const patience = 10 * time.Second

// retrying returns a client as an application has it: with the library's default tries.
func retrying(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 500 * time.Millisecond})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func wait(t *testing.T, s *faultproxy.Swallow) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(patience):
		t.Fatal("no reply was lost")
	}
}

// call is one way to publish a message.
type call struct {
	name string
	do   func(ctx context.Context, p *publisher.Publisher) (string, error)
	zset bool // only there
}

func calls() []call {
	return []call{
		{"Publish", func(ctx context.Context, p *publisher.Publisher) (string, error) {
			return p.Publish(ctx, urn, nil, fixed()...)
		}, false},
		{"PublishWithHeaders", func(ctx context.Context, p *publisher.Publisher) (string, error) {
			return p.PublishWithHeaders(ctx, map[string]string{"k": "v"}, urn, nil, fixed()...)
		}, false},
		{"PublishBatch", func(ctx context.Context, p *publisher.Publisher) (string, error) {
			results, err := p.PublishBatch(ctx, []publisher.Message{{URN: urn, ID: id}})
			if !errors.Is(err, results[0].Err) {
				return "", errors.New("the error of the whole is not the message's")
			}
			return results[0].ID, err
		}, false},
		{"PublishDelayed", func(ctx context.Context, p *publisher.Publisher) (string, error) {
			return p.PublishDelayed(ctx, time.Hour, urn, nil, fixed()...)
		}, true},
	}
}

// eachCall runs fn for every way to publish, in both layouts.
func eachCall(t *testing.T, fn func(t *testing.T, b testredis.Backend, at target, c call)) {
	t.Helper()
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b testredis.Backend, at target) {
				if !c.zset || at.Layout == publisher.Zset {
					fn(t, b, at, c)
				}
			})
		})
	}
}

// total is how many messages the queue holds, ready and delayed.
func (at target) total(t *testing.T) int {
	t.Helper()
	ready, err := at.direct.LLen(t.Context(), at.key()).Result()
	if err != nil {
		t.Fatal(err)
	}
	delayed, err := at.direct.ZCard(t.Context(), at.key()+":delayed").Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(ready + delayed)
}

// TestLostReply covers B03: one copy, and an error that says it may be there.
func TestLostReply(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]faultproxy.SwallowOption{
		"connection cut": nil, "silence": {faultproxy.KeepOpen()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachCall(t, func(t *testing.T, b testredis.Backend, at target, c call) {
				// Makes the scripts known, so that it is not the answer NOSCRIPT that gets lost.
				warm := newTarget(at.Layout, at.direct, b.Prefix+"warm:")
				if _, err := c.do(t.Context(), warm.open(t)); err != nil {
					t.Fatal(err)
				}

				proxy := faultproxy.Start(t, b.Addr)
				at.Client = retrying(t, proxy.Addr())
				swallow := proxy.SwallowNext(at.key(), opts...)
				got, err := c.do(t.Context(), at.open(t))
				wait(t, swallow)
				wantClass(t, err, publisher.ErrMayBeStored)
				if err != nil && !strings.Contains(err.Error(), "may have been stored") {
					t.Errorf("error %q does not say so", err)
				}
				if got != id {
					t.Errorf("id %q; the caller needs it to try again", got)
				}
				if n := at.total(t); n != 1 {
					t.Errorf("%d copies stored, want 1", n)
				}
				if n := proxy.Count(at.key()); n != 1 {
					t.Errorf("sent %d times, want once", n)
				}
			})
		})
	}
}

// TestDeadServer: nobody listens, so nothing can have been stored.
func TestDeadServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	client := testredis.Client(t, addr)
	for _, layout := range []publisher.Layout{publisher.Legacy, publisher.Zset} {
		for _, c := range calls() {
			if c.zset && layout != publisher.Zset {
				continue
			}
			got, err := c.do(t.Context(), newTarget(layout, client, "").open(t))
			wantClass(t, err, publisher.ErrUnavailable)
			if got != id {
				t.Errorf("%v %s: id %q", layout, c.name, got)
			}
		}
	}
}

// TestServerComesBack: a Publisher needs no help after an outage, and the scripts a new server does not know
// are sent again (B46).
func TestServerComesBack(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t, redisproc.Config{})
	client := testredis.Client(t, server.Addr())
	at := newTarget(publisher.Zset, client, "")
	p := at.open(t)
	publish := calls()[0].do
	if _, err := publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := publish(t.Context(), p); err == nil {
		t.Fatal("published to a dead server")
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, patience, func() bool {
		_, err := publish(t.Context(), p)
		return err == nil
	}, "publishing works again")
	at.stored(t, body("orders", `{}`))
}

// TestFullServer covers B43: a typed error and nothing stored.
func TestFullServer(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t, redisproc.Config{})
	client := testredis.Client(t, server.Addr())
	for name, value := range map[string]string{"maxmemory-policy": "noeviction", "maxmemory": "1"} {
		if err := client.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, layout := range []publisher.Layout{publisher.Legacy, publisher.Zset} {
		for _, c := range calls() {
			if c.zset && layout != publisher.Zset {
				continue
			}
			_, err := c.do(t.Context(), newTarget(layout, client, "").open(t))
			wantClass(t, err, publisher.ErrUnavailable)
			if !errors.Is(err, publisher.ErrFull) {
				t.Errorf("%v %s: %v, want ErrFull", layout, c.name, err)
			}
		}
	}
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys were written", n)
	}
}

// TestWrongPassword: refused, and the error does not tell the password that was tried (B48).
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	mini.RequireAuth("right")
	client := testredis.Client(t, "redis://:tried@"+mini.Addr())
	_, err := newTarget(publisher.Legacy, client, "").open(t).Publish(t.Context(), urn, nil)
	wantClass(t, err, publisher.ErrRefused)
	if err != nil && strings.Contains(err.Error(), "tried") {
		t.Errorf("error %q tells the password", err)
	}
}

// TestWrongType: the error names the key, and nothing is written to the others of the queue (B07).
func TestWrongType(t *testing.T) {
	t.Parallel()
	eachCall(t, func(t *testing.T, b testredis.Backend, at target, c call) {
		suffixes := []string{""}
		if at.Layout == publisher.Zset {
			suffixes = append(suffixes, ":notify")
		}
		if c.zset {
			suffixes = []string{":delayed"}
		}
		for _, suffix := range suffixes {
			at.KeyPrefix = b.Prefix + "wrong" + suffix + ":"
			key := at.key() + suffix
			if err := at.direct.Set(t.Context(), key, "not of that kind", 0).Err(); err != nil {
				t.Fatal(err)
			}
			_, err := c.do(t.Context(), at.open(t))
			wantClass(t, err, publisher.ErrRefused)
			if err != nil && !strings.Contains(err.Error(), key) {
				t.Errorf("error %q does not name %s", err, key)
			}
			if err != nil && strings.Contains(err.Error(), trace) {
				t.Errorf("error %q holds the message", err)
			}
			keys := at.direct.Keys(t.Context(), at.KeyPrefix+"*").Val()
			if len(keys) != 1 {
				t.Errorf("keys written: %q", keys)
			}
		}
	})
}

// TestContextEnded: nothing is sent any more, and the error says why.
func TestContextEnded(t *testing.T) {
	t.Parallel()
	why := errors.New("the caller is gone")
	cancelled, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	late, stop := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer stop()
	client := testredis.Client(t, testredis.Mini(t).Addr())
	for _, c := range calls() {
		p := newTarget(publisher.Zset, client, "").open(t)
		for ctx, want := range map[context.Context]error{cancelled: why, late: context.DeadlineExceeded} {
			got, err := c.do(ctx, p)
			wantClass(t, err, publisher.ErrNotSent)
			if !errors.Is(err, want) || got != id {
				t.Errorf("%s: %q, %v", c.name, got, err)
			}
		}
	}
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys were written", n)
	}
}
