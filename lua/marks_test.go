package lua

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

const (
	holder = "aaaa"
	rival  = "bbbb"
)

// claims checks one claim after the other; each is token and whether it should be held then.
func claims(t *testing.T, m Marks, id string, steps ...any) {
	t.Helper()
	for i := 0; i < len(steps); i += 2 {
		if held, err := m.Claim(t.Context(), id, steps[i].(string), time.Minute); err != nil || held != steps[i+1] {
			t.Fatalf("step %d: %s holds the claim: %t, %v", i/2, steps[i], held, err)
		}
	}
}

func TestClaim(t *testing.T) { // R6
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		m := Marks{Client: b.Client, Prefix: b.Prefix}
		key := b.Prefix + "bq:claim:x"
		claims(t, m, "x", holder, true, rival, false, holder, true)
		if got := b.Client.Get(t.Context(), key).Val(); got != holder {
			t.Errorf("the key holds %q", got)
		}
		if left := b.Client.PTTL(t.Context(), key).Val(); left <= 0 || left > time.Minute {
			t.Errorf("the claim runs out in %v", left)
		}
		if err := m.Unclaim(t.Context(), "x", rival); err != nil {
			t.Fatal(err)
		}
		claims(t, m, "x", rival, false) // the rival's end of a claim it had not ended nothing
		if err := m.Unclaim(t.Context(), "x", holder); err != nil {
			t.Fatal(err)
		}
		if n := b.Client.Exists(t.Context(), key).Val(); n != 0 {
			t.Error("the claim is still there")
		}
		claims(t, m, "x", rival, true, holder, false)
	})
}

// A claim that is held longer runs out later; what is shorter than Redis can count is a millisecond.
func TestClaimExpiry(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		m := Marks{Client: b.Client, Prefix: b.Prefix}
		claims(t, m, "x", holder, true)
		if held, err := m.Claim(t.Context(), "x", holder, time.Hour); err != nil || !held {
			t.Fatalf("held longer: %t, %v", held, err)
		}
		if left := b.Client.PTTL(t.Context(), b.Prefix+"bq:claim:x").Val(); left <= time.Minute {
			t.Errorf("it runs out in %v", left)
		}
		if held, err := m.Claim(t.Context(), "y", holder, time.Nanosecond); err != nil || !held {
			t.Errorf("for a nanosecond: %t, %v", held, err)
		}
	})
}

func TestClaimOfAnotherType(t *testing.T) { // B07
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		m := Marks{Client: b.Client, Prefix: b.Prefix}
		key := b.Prefix + "bq:claim:x"
		if err := b.Client.RPush(t.Context(), key, holder).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := m.Claim(t.Context(), "x", holder, time.Minute)
		for _, err := range []error{err, m.Unclaim(t.Context(), "x", holder)} {
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("got %v, want an error that names %q", err, key)
			}
		}
		if n := b.Client.LLen(t.Context(), key).Val(); n != 1 {
			t.Error("the key was changed")
		}
	})
}

// A full server lets claims be taken and ended, or its consumers could not drain it. It refuses to remember.
func TestClaimOnAFullServer(t *testing.T) { // B43
	t.Parallel()
	server := testredis.Server(t, redisproc.Config{MaxMemory: "64mb", MaxMemoryPolicy: "noeviction"})
	client := testredis.Client(t, server.URL())
	m := Marks{Client: client}
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := m.Remember(t.Context(), "x", 0); err == nil {
		t.Error("the server is not full")
	}
	claims(t, m, "x", holder, true, rival, false)
	if err := m.Unclaim(t.Context(), "x", holder); err != nil {
		t.Error(err)
	}
}

func TestSeen(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		m := Marks{Client: b.Client, Prefix: b.Prefix}
		seen := func(want bool) {
			t.Helper()
			if got, err := m.Seen(t.Context(), "a b{c}"); err != nil || got != want {
				t.Fatalf("seen %t, %v, want %t", got, err, want)
			}
		}
		key := b.Prefix + "bq:idemp:a b{c}"
		seen(false)
		if err := m.Remember(t.Context(), "a b{c}", time.Hour); err != nil {
			t.Fatal(err)
		}
		seen(true)
		if err := m.Remember(t.Context(), "a b{c}", time.Minute); err != nil {
			t.Fatal(err)
		}
		if got, left := b.Client.Get(t.Context(), key).Val(), b.Client.PTTL(t.Context(), key).Val(); got != "1" || left <= time.Minute {
			t.Errorf("the key holds %q for %v", got, left)
		}
		if err := m.Forget(t.Context(), "a b{c}"); err != nil {
			t.Fatal(err)
		}
		seen(false)
		if err := m.Remember(t.Context(), "a b{c}", 0); err != nil {
			t.Fatal(err)
		}
		if left := b.Client.TTL(t.Context(), key).Val(); left != -1 {
			t.Errorf("it runs out in %v", left)
		}
	})
}

// A claim whose reply is lost is sent again by the client, and is the holder's: unlike other commands that change state
// it does the same when it comes twice.
func TestClaimWithALostReply(t *testing.T) { // R3
	t.Parallel()
	server := testredis.Shared(t)
	proxy := faultproxy.Start(t, server.Addr())
	client := redis.NewClient(&redis.Options{
		Addr: proxy.Addr(), MaxRetries: 1, MinRetryBackoff: -1, MaxRetryBackoff: -1, DisableIdentity: true,
	})
	t.Cleanup(func() { _ = client.Close() })
	m := Marks{Client: client, Prefix: testredis.Prefix(t)}
	claims(t, m, "known", holder, true) // the server knows the script
	lost := proxy.SwallowNext("bq:claim:x")
	claims(t, m, "x", holder, true, rival, false)
	testredis.Await(t, lost.Done(), time.Minute, "the lost reply")
	if n := proxy.Count("bq:claim:x"); n != 3 {
		t.Errorf("%d commands, want 3", n)
	}
	if err := m.Unclaim(t.Context(), "x", holder); err != nil {
		t.Error(err)
	}
}
