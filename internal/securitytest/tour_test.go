package securitytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
	"github.com/babelpool/babelpool/router"
)

// publishTour does everything a publisher does, twice: the second time the server knows the scripts.
func (s *station) publishTour(client *redis.Client) {
	s.t.Helper()
	t, ctx := s.t, s.t.Context()
	p, err := publisher.New(publisher.Config{
		Client: client, Queue: "orders", KeyPrefix: s.prefix, Layout: s.layout, Logger: slog.New(&testlog.Recorder{}),
	})
	must(t, err)
	for range 2 {
		_, err = p.Publish(ctx, "urn:ack", nil)
		must(t, err)
		_, err = p.PublishWithHeaders(ctx, map[string]string{"traceparent": "x"}, "urn:ack", nil)
		must(t, err)
		_, err = p.PublishBatch(ctx, []publisher.Message{{URN: "urn:ack"}, {URN: "urn:ack"}})
		must(t, err)
		_, err = p.PublishRaw(ctx, []string{body("urn:ack", 1)})
		must(t, err)
		_, err = client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			_, err := p.PublishIn(ctx, tx, "urn:ack", nil)
			return err
		})
		must(t, err)
		if s.layout == pool.Zset {
			_, err = p.PublishDelayed(ctx, time.Second, "urn:ack", nil)
			must(t, err)
		}
	}
}

// consumeTour lets two pools meet every outcome: ack, failures, retries with a delay of their own, dead letters, an
// unknown URN, poison, another system's job, twins, a lease that is renewed and one that had run out, a due message, an
// idle queue, a stop that cuts a wait short, and one that hands back.
func (s *station) consumeTour(client *redis.Client) {
	s.t.Helper()
	bad := errors.New("bad")
	slow := make(chan struct{}, 100)
	mux := router.NewMux()
	mux.HandleFunc("urn:ack", func(context.Context, *delivery.Delivery) error { return nil })
	mux.HandleFunc("urn:fail", func(context.Context, *delivery.Delivery) error { return bad })
	mux.HandleFunc("urn:retry", func(context.Context, *delivery.Delivery) error { return delivery.RetryAfter(time.Second, bad) })
	mux.HandleFunc("urn:dead", func(context.Context, *delivery.Delivery) error { return delivery.DeadLetter(bad) })
	mux.HandleFunc("urn:slow", func(ctx context.Context, _ *delivery.Delivery) error {
		slow <- struct{}{}
		return retry.Sleep(ctx, 1500*time.Millisecond)
	})
	logs := &testlog.Recorder{}
	noDelay := 0.0
	cfg := pool.Config{
		Client: client, Queues: []pool.Queue{{Name: "orders"}}, Layout: s.layout, KeyPrefix: s.prefix, Handler: mux,
		Concurrency: 4, Prefetch: 64, RetryAfter: 2 * time.Second, MaxAttempts: 2, AdoptOrphans: true,
		MaxRecoveries: s.recoveries, DeadLetterLimits: s.limits,
		UnknownURN: pool.UnknownRelease, UnknownURNMaxAge: 1500 * time.Millisecond,
		DrainTimeout: 100 * time.Millisecond, Logger: slog.New(logs),
	}
	if s.keys.DeadLetters == graveyard {
		cfg.Queues[0].DeadLetterKey = graveyard
	}
	if s.layout == pool.Zset {
		cfg.FailureDelay = &noDelay
	} else {
		cfg.LegacyRetry = pool.Requeue
	}

	s.clear()
	deadBefore := s.dead()
	texts := []string{"poison", "{\"poison\":1}"}
	for i := range 30 {
		texts = append(texts, body("urn:ack", i))
	}
	for i, urn := range []string{"urn:fail", "urn:retry", "urn:dead", "urn:unknown", "urn:slow"} {
		texts = append(texts, body(urn, 100+i))
	}
	twin := body("urn:ack", 200)
	acked, dead := int64(34), int64(6) // acked, slow, twins, expired; two poison, failed, retried, dead, unknown
	if s.layout == pool.Zset {
		texts = append(texts, `{"job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{}}`, strings.Replace(twin, `"attempts":0`, `"attempts":9007199254740991`, 1))
		acked, dead = acked+1, dead+2
		s.do("ZADD", s.keys.Delayed, 1, body("urn:ack", 201))
	}
	texts = append(texts, twin, twin)
	s.push(texts...)
	s.expired(body("urn:ack", 202))
	p := start(s.t, cfg)
	testredis.Await(s.t, slow, patience, "the slow handler")
	p.until("everything has come to its end, and a lease was renewed", func(c pool.QueueStats) bool {
		return c.Renewed > 0 && c.Acked == acked && s.dead()-deadBefore == dead
	})
	s.awaitBlocked("consumer")
	_, err := p.Depths(s.t.Context())
	must(s.t, err)
	must(s.t, p.stop())

	// Another one is stopped with messages that nobody has started.
	texts = nil
	for i := range 40 {
		texts = append(texts, body("urn:hold", 300+i))
	}
	s.push(texts...)
	started := make(chan struct{}, 100)
	mux.HandleFunc("urn:hold", func(ctx context.Context, _ *delivery.Delivery) error {
		started <- struct{}{}
		return retry.Sleep(ctx, time.Minute)
	})
	p = start(s.t, cfg)
	testredis.Await(s.t, started, patience, "a handler")
	must(s.t, p.stop())
	if p.counts().HandedBack < 30 {
		s.t.Errorf("only %d messages were handed back", p.counts().HandedBack)
	}
	if lines := logs.With("NOPERM"); lines != nil {
		s.t.Errorf("logged: %s", lines[0])
	}
}

// storeTour does by the store alone what a pool does seldom: settlements out of order in a long list, orphans that are
// adopted, a lost call that is looked up, sweeps of leases that stand far apart.
func (s *station) storeTour(client *redis.Client) {
	s.t.Helper()
	t, ctx := s.t, s.t.Context()
	s.clear()
	const n = 1200
	var texts []string
	for i := range n {
		texts = append(texts, body("urn:ack", i))
	}
	for part := range slices.Chunk(texts, 300) {
		s.push(part...)
	}
	store := s.store(client, 0)
	_, err := store.Reserve(ctx, flow.ReserveRequest{Most: 4, Bytes: 3, FirstPop: 4, Migration: 1000}) // puts three back
	must(t, err)
	held := s.reserve(store, n-1)
	settle := func(some []*flow.Reservation, op func(i int) flow.Settlement) {
		t.Helper()
		batch := make([]flow.Settlement, len(some))
		for i, one := range some {
			batch[i] = op(i)
			batch[i].Reservation = one
		}
		results, err := store.Settle(ctx, batch)
		must(t, err)
		if i := slices.IndexFunc(results, func(r flow.Result) bool { return r != flow.Done }); i >= 0 {
			t.Fatalf("settlement %d: %v", i, results[i])
		}
	}
	ack := func(int) flow.Settlement { return flow.Settlement{} }
	if s.layout == pool.Legacy { // others', so that nothing stands where it should
		for i := range 50 {
			s.do("LPUSH", s.keys.Processing, fmt.Sprint("other ", i))
		}
	}
	settle(held[500:700], ack) // by tokens, in the middle
	rest := slices.Concat(held[:500], held[700:])
	rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	settle(rest[:40], ack)
	settle(rest[40:50], func(i int) flow.Settlement {
		if s.layout == pool.Legacy {
			return flow.Settlement{Op: flow.Requeue, Text: fmt.Sprint("requeued ", i)}
		}
		return flow.Settlement{Op: flow.Return, Delay: 1, Text: fmt.Sprint("returned ", i)}
	})
	settle(rest[50:60], func(i int) flow.Settlement {
		return flow.Settlement{Op: flow.DeadLetter, Text: fmt.Sprint("dead ", i)}
	})
	back := slices.Clone(rest[60:80])
	slices.SortFunc(back, func(a, b *flow.Reservation) int { return strings.Compare(a.Handle, b.Handle) })
	_, err = store.HandBack(ctx, back)
	must(t, err)
	_, err = store.Renew(ctx, []string{rest[100].Handle, rest[101].Handle})
	must(t, err)
	_, err = store.Audit(ctx)
	must(t, err)
	must(t, store.ReturnToken(ctx))
	if legacy, ok := store.(*lua.Legacy); ok {
		_, err = legacy.Adopt(ctx, []string{"other 7"})
		must(t, err)
		got, err := legacy.Recall(ctx, rest[100].Handle[:24], time.Now().Add(-time.Second))
		must(t, err)
		if got.Lease == nil || len(got.Lease.Items) == 0 {
			t.Error("the call was not found again")
		}
	}
	// Every third lease is longer, so those that run out stand far apart.
	var longer []string
	for i := 100; i < len(rest); i += 3 {
		longer = append(longer, rest[i].Handle)
	}
	_, err = s.store(client, time.Hour).Renew(ctx, longer)
	must(t, err)
	swept, err := s.store(client, time.Minute).Sweep(ctx, 1000)
	must(t, err)
	if swept < 100 {
		t.Errorf("%d leases swept", swept)
	}
}

// reserve takes n messages in calls of 300.
func (s *station) reserve(store lua.Store, n int) []*flow.Reservation {
	s.t.Helper()
	var held []*flow.Reservation
	for len(held) < n {
		got, err := store.Reserve(s.t.Context(), flow.ReserveRequest{Most: 300, Bytes: 1 << 30, FirstPop: 300, Migration: 1000})
		must(s.t, err)
		if got.Lease == nil {
			s.t.Fatalf("only %d messages to reserve", len(held))
		}
		for i := range got.Lease.Items {
			held = append(held, &got.Lease.Items[i])
		}
	}
	return held
}

// trimAll discards all dead letters, some by each limit.
func (s *station) trimAll(client *redis.Client) error {
	s.t.Helper()
	store := s.store(client, 0)
	for _, limits := range []flow.DeadLetterLimits{{Count: 3}, {Age: time.Nanosecond}, {Bytes: 1}} {
		for more := true; more; {
			var err error
			if _, more, err = store.Trim(s.t.Context(), limits); err != nil {
				return err
			}
		}
	}
	return nil
}
