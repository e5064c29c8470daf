package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/idempotency"
	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

func redisStore(t *testing.T, cfg idempotency.RedisConfig) *idempotency.Redis {
	t.Helper()
	r, err := idempotency.NewRedis(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The keys are those other SDKs use: what they have noted is not run here, and the other way round.
func TestRedisKeys(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		r, runs := redisStore(t, idempotency.RedisConfig{Client: b.Client, KeyPrefix: b.Prefix, TTL: time.Hour}), 0
		h, _ := wrap(idempotency.Config{Store: r, Claims: r}, func(context.Context, *delivery.Delivery) error {
			if runs++; b.Client.Exists(t.Context(), b.Prefix+"bq:claim:mine").Val() != 1 {
				t.Error("runs without the claim")
			}
			return nil
		})
		if err := b.Client.SetNX(t.Context(), b.Prefix+"bq:idemp:theirs", "1", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"theirs", "mine"} {
			if err := h.Handle(t.Context(), message(id)); err != nil {
				t.Fatal(err)
			}
		}
		key := b.Prefix + "bq:idemp:mine"
		left := b.Client.PTTL(t.Context(), key).Val()
		if got := b.Client.Get(t.Context(), key).Val(); got != "1" || left <= 0 || left > time.Hour || runs != 1 {
			t.Errorf("%q for %v after %d runs", got, left, runs)
		}
		if n := b.Client.Exists(t.Context(), b.Prefix+"bq:claim:mine", b.Prefix+"bq:claim:theirs").Val(); n != 0 {
			t.Errorf("%d claims are still there", n)
		}
	})
}

// Many workers get the same messages at the same time, on one server and on a cluster, where the keys of a message lie in
// different slots. Each message is handled once, by one of them, and the others ack it only then.
func TestManyWorkers(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		testredis.Each(t, func(t *testing.T, b testredis.Backend) {
			manyWorkers(t, idempotency.RedisConfig{Client: b.Client, KeyPrefix: b.Prefix})
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := testredis.Cluster(t, redisproc.ClusterConfig{})
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
		manyWorkers(t, idempotency.RedisConfig{Client: client})
	})
}

func manyWorkers(t *testing.T, cfg idempotency.RedisConfig) {
	r := redisStore(t, cfg)
	const ids, workers = 30, 8
	var runs, running [ids]atomic.Int32
	var done [ids]atomic.Bool
	handler := func(_ context.Context, d *delivery.Delivery) error {
		var i int
		if _, err := fmt.Sscan(d.Meta.ID, &i); err != nil {
			return err
		}
		if running[i].Add(1) > 1 {
			t.Errorf("message %d runs twice at a time", i)
		}
		defer running[i].Add(-1)
		if runs[i].Add(1) == 1 {
			return errBoom // the first run of each fails
		}
		done[i].Store(true)
		return nil
	}
	var group errgroup.Group
	for range workers {
		h, _ := wrap(idempotency.Config{Store: r, Claims: r}, handler)
		group.Go(func() error {
			for i := range ids {
				deadline := time.Now().Add(patience)
				for { // as a pool does with a message that failed
					err := h.Handle(t.Context(), message(fmt.Sprint(i)))
					if err == nil {
						break
					}
					if !errors.Is(err, errBoom) && !errors.Is(err, idempotency.ErrClaimed) || time.Now().After(deadline) {
						return err
					}
				}
				if !done[i].Load() {
					t.Errorf("message %d was acked before it was done", i)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		if n := runs[i].Load(); n != 2 {
			t.Errorf("message %d ran %d times, once in vain", i, n)
		}
	}
}

// The replies to a message's calls are lost, one after the other. Whatever the server has done, the message is handled,
// and a second time only where no note was made.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		call, match string
		err         error // of the delivery with the loss
		runs        int   // after it and one more
	}{
		{"claim", "evalsha", idempotency.ErrClaim, 1},
		{"seen", "exists", idempotency.ErrLookUp, 1},
		{"remember", "set", nil, 1},
	} {
		t.Run(tc.call, func(t *testing.T) {
			t.Parallel()
			server := testredis.Shared(t)
			proxy := faultproxy.Start(t, server.Addr())
			client := testredis.Client(t, proxy.Addr())
			r, runs := redisStore(t, idempotency.RedisConfig{Client: client, KeyPrefix: testredis.Prefix(t), TTL: time.Minute}), 0
			h, _ := wrap(idempotency.Config{Store: r, Claims: r}, func(context.Context, *delivery.Delivery) error {
				runs++
				return nil
			})
			if err := h.Handle(t.Context(), message("before")); err != nil || runs != 1 { // the server knows the scripts
				t.Fatal(runs, err)
			}
			runs = 0
			lost := proxy.SwallowNext(tc.match)
			if err := h.Handle(t.Context(), message("x")); !errors.Is(err, tc.err) {
				t.Errorf("got %v, want %v", err, tc.err)
			}
			testredis.Await(t, lost.Done(), patience, "the lost reply")
			if err := h.Handle(t.Context(), message("x")); err != nil {
				t.Errorf("the retry: %v", err)
			}
			if runs != tc.runs {
				t.Errorf("%d runs, want %d", runs, tc.runs)
			}
		})
	}
}

// A handler that is slower than its claim's expiry keeps the claim on a real server.
func TestSlowHandlerKeepsItsClaim(t *testing.T) {
	t.Parallel()
	server := testredis.Shared(t)
	client, prefix, first := testredis.Client(t, server.Addr()), testredis.Prefix(t), newSlow()
	r := redisStore(t, idempotency.RedisConfig{Client: client, KeyPrefix: prefix, TTL: time.Minute})
	h, logs := wrap(idempotency.Config{Store: r, Claims: r, ClaimExpiry: 600 * time.Millisecond}, first.handle)
	began := time.Now()
	other, _ := wrap(idempotency.Config{Store: r, Claims: r}, func(context.Context, *delivery.Delivery) error { return errBoom })
	ended := inBackground(t.Context(), h, "x")
	<-first.started
	testredis.Eventually(t, patience, func() bool {
		err := other.Handle(t.Context(), message("x"))
		if !errors.Is(err, idempotency.ErrClaimed) {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		return time.Since(began) > 2*time.Second
	}, "more than three expiries")
	first.release <- nil
	if err := testredis.Await(t, ended, patience, "the end"); err != nil {
		t.Error(err)
	}
	if n := client.Exists(t.Context(), prefix+"bq:claim:x").Val(); n != 0 {
		t.Error("the claim is still there")
	}
	logs.Want(t)
}

// The README says what a Redis user needs. Without it nothing is acked, and the log or the error says why.
func TestRedisUser(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := regexp.MustCompile("needs `([^`]*)` on\n`<prefix>(bq:idemp:\\*)`, and for claims `([^`]*)` on `<prefix>(bq:claim:\\*)`").FindStringSubmatch(string(readme))
	if rules == nil {
		t.Fatal("the README says it in other words")
	}
	server := testredis.Server(t, redisproc.Config{})
	admin := testredis.Client(t, server.URL())
	// The two kinds of keys have rights of their own (selectors, Redis 7).
	user := []any{"acl", "setuser", "worker", "on", ">secret"}
	for i := 1; i < len(rules); i += 2 {
		user = append(user, fmt.Sprintf("(%s ~app:%s)", rules[i], rules[i+1]))
	}
	if err := admin.Do(t.Context(), user...).Err(); err != nil {
		t.Fatal(err)
	}
	opts := *admin.Options()
	opts.Username, opts.Password = "worker", "secret"
	client := redis.NewClient(&opts)
	t.Cleanup(func() { _ = client.Close() })
	r, runs := redisStore(t, idempotency.RedisConfig{Client: client, KeyPrefix: "app:", TTL: time.Hour}), 0
	h, logs := wrap(idempotency.Config{Store: r, Claims: r}, func(context.Context, *delivery.Delivery) error { runs++; return nil })
	for range 2 {
		if err := h.Handle(t.Context(), message("x")); err != nil {
			t.Error(err)
		}
	}
	logs.Want(t)
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}
