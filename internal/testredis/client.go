package testredis

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Client returns a client for an address or a redis:// URL, closed when the test ends. It sends
// every command once (MaxRetries -1), dials once, and obeys context deadlines, so that a fault shows
// as what it is.
func Client(t testing.TB, addr string) *redis.Client {
	t.Helper()
	opts := &redis.Options{Addr: addr}
	if strings.Contains(addr, "://") {
		var err error
		if opts, err = redis.ParseURL(addr); err != nil {
			t.Fatal("the Redis URL cannot be parsed") // the error would repeat a password
		}
	}
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.ContextTimeoutEnabled = true
	// Two commands fewer on each new connection, for tests that count at a proxy.
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(opts)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("closing the test's client: %v", err)
		}
	})
	return client
}

// Mini returns an in-process imitation of Redis, closed when the test ends. Its TIME is the real
// clock; keys with a time to live expire only through FastForward.
//
// Scripts run in it, within limits (compared at v2.40.0 with a real server): unpack takes 5,114
// values and table.concat 2,557 (really 7,999 and no limit); an error that redis.call raises reaches
// the client as "ERR Error compiling script …" with the true text inside, while redis.pcall and
// redis.error_reply give it as it is; in tostring and "..", numbers from 1e15 on keep all digits;
// tonumber knows no exponents; cjson is another one; a "#!lua" header is a syntax error. It has no
// CONFIG, DEBUG or ROLE, of CLIENT only SETNAME and GETNAME, and of INFO only clients and stats.
func Mini(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	return miniredis.RunT(t)
}

// maxPrefixName keeps keys readable in a listing; the random part makes them unique.
const maxPrefixName = 40

// Prefix returns a key prefix that no other test has, such as "t:TestReserve-empty-3f9a01bc:". It
// holds letters, digits, "-", "_", "." and ":" only, so it is safe in a glob pattern and never makes
// or breaks a cluster hash tag.
func Prefix(t testing.TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		default:
			return '-'
		}
	}, t.Name())
	if len(name) > maxPrefixName {
		name = name[len(name)-maxPrefixName:] // the end names the sub-test
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return "t:" + name + "-" + hex.EncodeToString(random[:]) + ":"
}
