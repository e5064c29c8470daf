package testredis

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
)

// Backend is a Redis, real or not, as Each hands it to a test body.
type Backend struct {
	// Name is "miniredis" or "redis".
	Name string
	// Addr is host and port.
	Addr string
	// URL is what a further client connects to; it may hold a password, which Addr does not.
	URL string
	// Client is connected to Addr and closed when the test ends.
	Client *redis.Client
	// Prefix is this sub-test's own; every key it writes starts with it.
	Prefix string
	// Real is true for a real server.
	Real bool
	// Server is the shared real server, nil for the imitation.
	Server *redisproc.Server
	// Mini is the imitation, which belongs to this sub-test alone; nil for a real server.
	Mini *miniredis.Miniredis
}

// Via returns the URL to connect to when something stands between, such as a proxy at addr: that
// address with the backend's own credentials and database.
func (b Backend) Via(addr string) string {
	u, err := url.Parse(b.URL)
	if err != nil {
		return "redis://" + addr // cannot be: the backend was reached by it
	}
	u.Host = addr
	return u.String()
}

// Each runs fn as two parallel sub-tests: "miniredis" on an imitation of its own and "redis" on the
// shared server, the second skipping or failing as Server does.
func Each(t *testing.T, fn func(t *testing.T, b Backend)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		mini := Mini(t)
		fn(t, Backend{
			Name:   "miniredis",
			Addr:   mini.Addr(),
			URL:    "redis://" + mini.Addr(),
			Client: Client(t, mini.Addr()),
			Prefix: Prefix(t),
			Mini:   mini,
		})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		fn(t, Real(t))
	})
}

// Real is a prefix of the test's own on the shared real server; its keys are removed when the test ends.
func Real(t *testing.T) Backend {
	t.Helper()
	server := Shared(t)
	b := Backend{
		Name:   "redis",
		Addr:   server.Addr(),
		URL:    server.URL(),
		Client: Client(t, server.URL()),
		Prefix: Prefix(t),
		Real:   true,
		Server: server,
	}
	t.Cleanup(func() { removeKeys(t, b.Client, b.Prefix) })
	return b
}

// removeLimit bounds the clean-up of one sub-test's keys.
const removeLimit = 10 * time.Second

// removeKeys deletes what a test wrote, so that the shared server does not fill up and a server that
// somebody else owns stays as it was.
func removeKeys(t testing.TB, client *redis.Client, prefix string) {
	// Not t.Context: that one has ended when clean-up runs.
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	const perCall = 500
	var keys []string
	for scan := client.Scan(ctx, 0, prefix+"*", perCall).Iterator(); ; {
		more := scan.Next(ctx)
		if more {
			keys = append(keys, scan.Val())
		}
		if len(keys) > 0 && (!more || len(keys) == perCall) {
			if err := client.Unlink(ctx, keys...).Err(); err != nil {
				t.Errorf("removing the test's keys: %v", err)
				return
			}
			keys = keys[:0]
		}
		if !more {
			if err := scan.Err(); err != nil {
				t.Errorf("looking for the test's keys: %v", err)
			}
			return
		}
	}
}
