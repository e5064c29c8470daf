package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/pool"
)

func (r *rig) store() lua.Store {
	r.t.Helper()
	layout := pool.Legacy
	if r.layout == "zset" {
		layout = pool.Zset
	}
	keys, err := lua.NewKeys(layout, r.Prefix, "orders", "")
	if err != nil {
		r.t.Fatal(err)
	}
	return lua.New(layout, lua.Options{Client: r.Client, Keys: keys, RetryAfter: time.Minute})
}

func TestPublishAndPeek(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		wantText(t, r.fine("publish orders urn:babel:orders:created --id m-1"), "m-1\n")
		r.stdin = `{"order_id": 1e3}`
		wantText(t, r.fine("publish orders urn:babel:orders:paid --data - --id m-2 --json"), `"id": "m-2"`)
		r.do("rpush", r.key(""), "no envelope")
		got := decoded[[]message](r, "peek orders")
		if len(got) != 3 || got[0].ID != "m-1" || got[0].AgeS == nil || !strings.Contains(got[1].Stored, `{"order_id":1e3}`) || got[2].Bad == "" {
			t.Errorf("%+v", got)
		}
		wantText(t, r.fine("peek orders --limit 2"), "m-1", "urn:babel:orders:paid")
		if n := r.Client.LLen(t.Context(), r.key("")).Val(); n != 3 {
			t.Errorf("%d ready: something was taken", n)
		}
		if r.layout == "zset" {
			r.fine("publish orders urn:babel:orders:late --id m-3 --delay 1h")
			if got := decoded[[]message](r, "peek orders --delayed"); len(got) != 1 || got[0].ID != "m-3" || got[0].Due == nil {
				t.Errorf("%+v", got)
			}
			return
		}
		r.fine("publish orders urn:babel:orders:created --header traceparent=00-1-2-3 --id m-4")
		wantText(t, r.fine("peek orders"), "m-4")
	})
}

func TestPublishUsage(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		for _, words := range []string{
			"publish orders", "publish orders urn:x --data [1]", "publish orders urn:x --data nonsense", "publish :delayed urn:x",
			"publish orders urn:x --delay 1s --header a=b", "peek orders --limit 0", "peek", "adopt orders --lease 1s",
		} {
			if got := r.run(words); got.code != exitUsage || got.errOut == "" {
				t.Errorf("%s: exit %d, %s", words, got.code, got.errOut)
			}
		}
		for words, layout := range map[string]string{"peek orders --delayed": "legacy", "publish orders urn:x --delay 1s": "legacy", "adopt orders": "zset"} {
			if got := r.run(words); r.layout == layout && got.code != exitUsage {
				t.Errorf("%s: exit %d, %s", words, got.code, got.errOut)
			}
		}
	})
}

func TestInFlightSweepAdopt(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		r.do("rpush", r.key(""), body("m-1"), body("m-2"))
		if _, err := r.store().Reserve(t.Context(), flow.ReserveRequest{Most: 1, Bytes: 1 << 20, FirstPop: 1, Migration: 1}); err != nil {
			t.Fatal(err)
		}
		if r.layout == "legacy" {
			r.do("rpush", r.inFlight(), body("m-9"))
		} else {
			r.do("zadd", r.inFlight(), "+inf", body("m-9"))
		}
		orphans, leased := 0, 0
		for _, m := range decoded[[]message](r, "inflight orders") {
			switch {
			case m.Orphan && m.ID == "m-9" && m.Due == nil:
				orphans++
			case !m.Orphan && m.ID == "m-1" && m.Due != nil:
				leased++
			}
		}
		if orphans != 1 || leased != 1 {
			t.Errorf("%d orphans, %d with a lease", orphans, leased)
		}
		wantText(t, r.fine("inflight orders"), "orphan", "m-9", "m-1", "lease ends in")
		wantText(t, r.fine("sweep orders"), "0 messages")

		if r.layout == "legacy" {
			if got := r.run("adopt orders --look-again 1ms"); got.code != exitUnwilling {
				t.Errorf("exit %d", got.code)
			}
			wantText(t, r.fine("adopt orders --dry-run --look-again 1ms"), "1 orphans would be adopted")
			wantText(t, r.fine("adopt orders --yes --lease 1h --look-again 1ms"), "1 orphans adopted")
			wantText(t, r.fine("adopt orders"), "0 orphans")
			r.do("zadd", r.key(":processing:deadlines"), "xx", "1000", r.Client.ZRange(t.Context(), r.key(":processing:deadlines"), 0, 0).Val()[0])
		} else {
			r.do("zadd", r.key(":delayed"), "1000", body("m-5"))
		}
		wantText(t, r.fine("sweep orders --json"), `"moved": 1`)
	})
}

// afterFirst is a hook that does something after the first script.
type afterFirst struct {
	once sync.Once
	do   func()
}

func (h *afterFirst) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *afterFirst) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && cmd.Name() == "evalsha" {
			h.once.Do(h.do)
		}
		return err
	}
}

func (h *afterFirst) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A value that gets its deadline between the two looks is a consumer's, and no orphan (L7).
func TestAdoptLooksTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, "legacy")
	r.do("rpush", r.inFlight(), body("orphan"), body("late"))
	if _, err := r.store().Audit(t.Context()); err != nil { // the server knows the script from here on
		t.Fatal(err)
	}
	client := testredis.Client(t, r.URL)
	client.AddHook(&afterFirst{do: func() {
		r.do("zadd", r.key(":processing:deadlines"), "5e9", strings.Repeat("0", 32)+":"+body("late"))
	}})
	keys, err := lua.NewKeys(pool.Legacy, r.Prefix, "orders", "")
	if err != nil {
		t.Fatal(err)
	}
	values, all, err := orphansTwice(t.Context(), lua.NewLegacy(lua.Options{Client: client, Keys: keys}), time.Millisecond)
	if err != nil || all != 1 || len(values) != 1 || values[0] != body("orphan") {
		t.Errorf("orphans %v of %d, %v", values, all, err)
	}
}
