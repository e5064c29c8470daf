package main

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/chaos"
	"github.com/babelpool/babelpool/internal/testredis"
)

func TestEvidence(t *testing.T) {
	t.Parallel()
	run := func(b *books) int { n, _ := b.started(0); return n }
	succeed := func(b *books, run int) { b.judge(0, run); b.succeeded(0) }
	for name, tt := range map[string]struct {
		happens func(b *books)
		want    evidence
	}{
		"a run": {func(b *books) { succeed(b, run(b)) }, evidence{}},
		"an overtaken run, and one that was acked": {func(b *books) {
			first := run(b)
			second := run(b)
			succeed(b, first)
			succeed(b, second)
		}, evidence{Unexplained: 1}},
		"an overtaken run whose ack took the message away": {func(b *books) {
			first := run(b)
			run(b) // fails
			succeed(b, first)
		}, evidence{Stolen: 1}},
		"the same, and the message waits": {func(b *books) {
			first := run(b)
			run(b)
			succeed(b, first)
			b.found(0, inFlight)
		}, evidence{}},
		"the same, with a run whose number proves nothing": {func(b *books) {
			first := run(b)
			run(b)
			b.entry(0).add(misjudged)
			succeed(b, first)
		}, evidence{}},
		"two deliveries with one number": {func(b *books) {
			b.delivered(0, 1)
			b.delivered(0, 2)
			b.delivered(0, 2)
			succeed(b, run(b))
		}, evidence{Repeated: 1}},
		"numbers that are not kept": {func(b *books) {
			for range 2 {
				b.delivered(0, 0)
				b.delivered(0, lastDelivery+1)
			}
			b.delivered(0, lastDelivery)
			succeed(b, run(b))
		}, evidence{}},
		"a duplicate of a consumer that may lose its lease": {func(b *books) {
			b.entry(0).add(unrenewed)
			succeed(b, run(b))
			succeed(b, run(b))
		}, evidence{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBooks()
			if err := b.open(1); err != nil {
				t.Fatal(err)
			}
			b.published(0, stored)
			tt.happens(b)
			sums := b.tally()
			if diff := cmp.Diff(tt.want, sums.Evidence); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if sound := tt.want.Stolen+tt.want.Repeated == 0; sums.balanced() != sound {
				t.Errorf("balanced: %v", !sound)
			}
		})
	}
}

// A consumer whose clock is behind writes times that are behind.
func TestAWrongClock(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		var faults chaos.Counters
		client := testredis.Client(t, b.URL)
		client.AddHook(newScriptHook(wrongClock{time.Hour, &faults, &sync.Map{}}))
		call := func(text string, words ...any) string {
			t.Helper()
			// As a store calls: the hash, and the text when the server does not know it.
			args := append([]any{"evalsha", redis.NewScript(text).Hash(), 1, b.Prefix + "key"}, words...)
			cmd := redis.NewCmd(t.Context(), args...)
			err := client.Process(t.Context(), cmd)
			if redis.HasErrorPrefix(err, "NOSCRIPT") {
				args[0], args[1] = "eval", text
				cmd = redis.NewCmd(context.WithoutCancel(t.Context()), args...)
				err = client.Process(t.Context(), cmd)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, _ := cmd.Val().(string)
			return got
		}
		const timed = "local function clock(t) return t end\nreturn ARGV[1] .. ' ' .. clock(ARGV[2])"
		for range 3 {
			got := call(timed, "first", "")
			at, err := strconv.ParseInt(got[len("first "):], 10, 64)
			if err != nil || time.Since(time.Unix(at, 0)).Round(time.Minute) != time.Hour {
				t.Errorf("the script's clock says %q", got)
			}
		}
		if got := call("return ARGV[1]", "plain"); got != "plain" {
			t.Errorf("a script without a clock got %q", got)
		}
		if n := faults.Of(chaos.ClockSkew); n != 3 {
			t.Errorf("counted %d", n)
		}
	})
}
