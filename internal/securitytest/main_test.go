package securitytest

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// patience bounds every wait that is no assertion about time.
const patience = time.Minute

var layouts = []pool.Layout{pool.Legacy, pool.Zset}

// library is what the client library logs by itself, of all tests.
var library = &libraryLog{}

// TestMain makes an authority that this process trusts, as a user's machine trusts its own, before anything has read
// the system's.
func TestMain(m *testing.M) {
	redis.SetLogger(library)
	if err := trustOwnAuthority(); err != nil {
		fmt.Fprintln(os.Stderr, "making an authority:", err)
		os.Exit(1)
	}
	// These tests wait for leases and outages far more than they compute. A -parallel on the command line still counts, as
	// it is read later.
	_ = flag.Set("test.parallel", "8") // the flag exists: m has registered it
	testredis.Main(m)
}

type libraryLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *libraryLog) Printf(_ context.Context, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", args...)
}

func (l *libraryLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open is pool.OpenRedis, closed when the test ends.
func open(t *testing.T, url string) *redis.Client {
	t.Helper()
	client, err := pool.OpenRedis(url)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// running is a pool that runs until it is stopped, or its test ends.
type running struct {
	*pool.Pool
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // of Run; valid when ended is closed
}

func start(t *testing.T, cfg pool.Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &running{Pool: pool.New(cfg), t: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = p.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		testredis.Await(t, p.ended, patience, "the pool's end")
	})
	return p
}

// stop ends the pool and returns what Run returned.
func (p *running) stop() error {
	p.t.Helper()
	p.cancel()
	testredis.Await(p.t, p.ended, patience, "the pool's end")
	return p.err
}

// counts are the pool's counters of its first queue; zero before it has started.
func (p *running) counts() pool.QueueStats {
	if all := p.Stats().Queues; len(all) > 0 {
		return all[0]
	}
	return pool.QueueStats{}
}

// until waits for something that the counters show.
func (p *running) until(what string, cond func(c pool.QueueStats) bool) {
	p.t.Helper()
	testredis.Eventually(p.t, patience, func() bool { return cond(p.counts()) }, "%s", what)
}

// body is an envelope with a number, of this moment.
func body(urn string, n int) string {
	return fmt.Sprintf(`{"job":%q,"trace_id":"t-%d","data":{"n":%d,"card":"%s"},"meta":{"id":"m-%d","queue":"orders","lang":"go",`+
		`"schema_version":1,"created_at":%d},"attempts":0}`, urn, n, n, secretInBody, n, time.Now().UnixMilli())
}

const (
	secretInBody     = "hush-body-4111"
	secretInHeader   = "hush-header-9b1c"
	secretInPassword = "hush-password-x7"
)

// secretsIn is what a text tells that it must not.
func secretsIn(text string) []string {
	var found []string
	for _, secret := range []string{secretInBody, secretInHeader, secretInPassword} {
		if strings.Contains(text, secret) {
			found = append(found, secret)
		}
	}
	return found
}
