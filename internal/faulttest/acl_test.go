package faulttest

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
)

// readmeACL is what the README prints for a role: the commands, each with its plus sign.
func readmeACL(t *testing.T, role string) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	_, after, found := strings.Cut(string(text), "```acl "+role+"\n")
	rules, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatalf("the README has no block of rules for a %s", role)
	}
	return regexp.MustCompile(`\+[a-z|]+`).FindAllString(rules, -1)
}

// TestMinimalACL runs everything a pool and a publisher do as users that may do what the README says, and nothing else. No
// command may be refused, and none may be allowed in vain.
func TestMinimalACL(t *testing.T) {
	t.Parallel()
	used := map[string]map[string]bool{"consumer": {}, "publisher": {}}
	for _, layout := range layouts {
		r := newRig(t, layout, redisproc.Config{})
		as := func(role string) *redis.Client {
			keys := r.prefix + "*orders*"
			words := []any{"ACL", "SETUSER", role, "on", ">" + role, "resetchannels", "-@all", "~" + keys}
			for _, rule := range readmeACL(t, role) {
				words = append(words, rule)
			}
			must(t, r.control.Do(t.Context(), words...).Err())
			return r.client("redis://" + role + ":" + role + "@" + r.server.Addr())
		}
		consumer, producer := as("consumer"), as("publisher")

		r.resetStats()
		publishEverything(t, r, producer)
		r.collect(used["publisher"])
		consumeEverything(t, r, consumer)
		settleScattered(t, r, consumer)
		r.collect(used["consumer"])

		refused, err := r.control.Do(t.Context(), "ACL", "LOG").Slice()
		must(t, err)
		if len(refused) > 0 {
			t.Errorf("%s: refused: %v", layout, refused)
		}
		// A publisher's user cannot take messages away.
		if err := producer.LPop(t.Context(), r.keys.Ready).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("a publisher may take messages: %v", err)
		}
		if err := consumer.Get(t.Context(), r.prefix+"another").Err(); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Errorf("a consumer may read other keys: %v", err)
		}
	}
	for role, have := range used {
		for _, rule := range readmeACL(t, role) {
			if name := rule[1:]; !have[name] {
				t.Errorf("the README allows a %s %s, which nothing here needs; all used: %v", role, name, slices.Sorted(maps.Keys(have)))
			}
		}
	}
}

// resetStats forgets the server's counts of commands.
func (r *rig) resetStats() { must(r.t, r.control.ConfigResetStat(context.Background()).Err()) }

// collect adds the commands that were run since the last call; those of the test's own connection are not told apart.
func (r *rig) collect(into map[string]bool) {
	r.t.Helper()
	info, err := r.control.Info(context.Background(), "commandstats").Result()
	must(r.t, err)
	for _, match := range regexp.MustCompile(`(?m)^cmdstat_([^:]+):`).FindAllStringSubmatch(info, -1) {
		into[match[1]] = true
	}
	r.resetStats()
}

func publishEverything(t *testing.T, r *rig, client *redis.Client) {
	t.Helper()
	p, err := publisher.New(publisher.Config{Client: client, Queue: r.queue, KeyPrefix: r.prefix, Layout: r.layout})
	must(t, err)
	_, err = p.Publish(t.Context(), "urn:babel:acl:other", nil)
	must(t, err)
	_, err = p.PublishBatch(t.Context(), []publisher.Message{{URN: "urn:babel:acl:other"}, {URN: "urn:babel:acl:other"}})
	must(t, err)
	tx := client.TxPipeline()
	_, err = p.PublishIn(t.Context(), tx, "urn:babel:acl:other", nil)
	must(t, err)
	_, err = tx.Exec(t.Context())
	must(t, err)
	if r.layout == pool.Zset {
		_, err = p.PublishDelayed(t.Context(), time.Second, "urn:babel:acl:other", nil)
		must(t, err)
	}
}

// consumeEverything lets a pool meet every outcome: ack, failure, dead letter, poison, release, requeue, an expired
// and a renewed lease, an idle queue, and messages handed back at its end.
func consumeEverything(t *testing.T, r *rig, client *redis.Client) {
	t.Helper()
	r.publish(40)
	must(t, r.control.RPush(t.Context(), r.keys.Ready, "poison").Err())
	failing := errors.New("failing")
	var runs atomic.Int64
	noDelay := 0.0
	cfg := pool.Config{
		Client: client, Concurrency: 4, Prefetch: 12, FailureDelay: &noDelay, MaxAttempts: 2, LegacyRetry: pool.Requeue,
		DrainTimeout: time.Second,
		Handler: r.handler(func(ctx context.Context, seq int, d *delivery.Delivery) error {
			switch {
			case runs.Add(1) == 1:
				return nap(ctx, 1500*time.Millisecond) // its lease is renewed
			case seq%3 == 1:
				return failing
			case seq%3 == 2:
				return delivery.DeadLetter(failing)
			}
			return nil
		}),
	}
	if r.layout == pool.Zset {
		cfg.LegacyRetry = 0
	}
	p := r.start(cfg)
	p.until("everything is settled, and a lease renewed", func(c pool.QueueStats) bool {
		return c.Renewed > 0 && c.Poison == 1 && c.Reserved == c.Acked+c.DeadLettered+c.Requeued+c.Released+c.Left
	})
	pause(t, 1500*time.Millisecond) // an idle queue: waits, an audit
	p.stopClean()
	if lines := p.logs.count("NOPERM"); lines > 0 {
		t.Errorf("%d lines of the log tell of refused commands", lines)
	}
	// Another one is stopped with messages that nobody has started.
	r.publish(30)
	cfg.Handler = r.handler(func(ctx context.Context, _ int, _ *delivery.Delivery) error { return nap(ctx, 300*time.Millisecond) })
	p = r.start(cfg)
	p.until("handlers run", func(c pool.QueueStats) bool { return c.Started >= 4 })
	p.stopClean()
	if p.counts().HandedBack == 0 {
		t.Error("nothing was handed back")
	}
}

// settleScattered uses the store alone for what a pool does seldom.
func settleScattered(t *testing.T, r *rig, client *redis.Client) {
	t.Helper()
	ctx := t.Context()
	must(t, r.control.Del(ctx, r.keys.Ready).Err())
	r.publish(1200)
	store := lua.New(r.layout, lua.Options{Client: client, Keys: r.keys, RetryAfter: 2 * time.Second})
	defer store.Close()
	var held []*flow.Reservation
	for len(held) < 1200 {
		got, err := store.Reserve(ctx, flow.ReserveRequest{Most: 300, Bytes: 1 << 30, FirstPop: 300, Migration: 1000})
		must(t, err)
		for i := range got.Lease.Items {
			held = append(held, &got.Lease.Items[i])
		}
	}
	settle := func(some []*flow.Reservation) {
		batch := make([]flow.Settlement, len(some))
		for i, one := range some {
			batch[i].Reservation = one
		}
		results, err := store.Settle(ctx, batch)
		must(t, err)
		for i, result := range results {
			if result != flow.Done {
				t.Fatalf("settlement %d: %v", i, result)
			}
		}
	}
	if r.layout == pool.Legacy { // another consumer's, so that nothing stands where it should
		others := make([]any, 50)
		for i := range others {
			others[i] = i
		}
		must(t, r.control.LPush(ctx, r.keys.Processing, others...).Err())
	}
	settle(held[500:700]) // by tokens, in the middle
	rest := slices.Concat(held[:500], held[700:])
	rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	settle(rest[:40])
	_, err := store.HandBack(ctx, rest[40:60])
	must(t, err)
	if legacy, ok := store.(*lua.Legacy); ok {
		must(t, r.control.LPush(ctx, r.keys.Processing, "orphan").Err())
		_, err = legacy.Adopt(ctx, []string{"orphan"})
		must(t, err)
		_, err = legacy.Recall(ctx, rest[100].Handle[:24], time.Now().Add(-time.Second))
		must(t, err)
	}
	testredis.Eventually(t, patience, func() bool { // the rest expires
		moved, err := store.Sweep(ctx, 1000)
		must(t, err)
		return moved > 0
	}, "expired leases")
}
