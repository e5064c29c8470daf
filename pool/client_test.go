package pool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/faultproxy"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// closing closes a client when the test ends.
func closing[C interface{ Close() error }](t *testing.T, c C) C {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// open is OpenRedis, closed when the test ends.
func open(t *testing.T, url string) *redis.Client {
	t.Helper()
	c, err := pool.OpenRedis(url)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, c)
}

// problem is what Run says to a config it must refuse.
func problem(t *testing.T, cfg pool.Config) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that a config it does not refuse is not run for ever
	err := pool.New(cfg).Run(ctx)
	if !errors.Is(err, pool.ErrConfig) {
		t.Errorf("Run: %v, want ErrConfig", err)
		return ""
	}
	return err.Error()
}

func wantWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

func TestRingIsRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	cfg := valid(t)
	cfg.Client = closing(t, redis.NewRing(&redis.RingOptions{}))
	wantWords(t, problem(t, cfg), "Client: a *redis.Ring", "use a *redis.ClusterClient and hash-tagged queue names")
}

// TestPoolSize covers B17: the connections blocked on empty queues must leave some for the rest.
func TestPoolSize(t *testing.T) {
	t.Parallel()
	cfg := valid(t)
	cfg.Queues = three()
	cfg.Client = closing(t, redis.NewClient(&redis.Options{PoolSize: 6}))
	wantWords(t, problem(t, cfg), "Client: its PoolSize is 6; 3 queues need at least 7")

	cfg.Client = closing(t, redis.NewClient(&redis.Options{PoolSize: 7}))
	if _, err := pool.FillIn(cfg); err != nil {
		t.Errorf("with 7: %v", err)
	}
	cfg.Queues = []pool.Queue{{Name: "{orders}"}}
	cfg.Client = closing(t, redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 4}))
	wantWords(t, problem(t, cfg), "Client: its PoolSize is 4; 1 queues need at least 5")
}

func TestOpenRedis(t *testing.T) {
	t.Parallel()
	o := open(t, "redis://user:pass@example.test:7000/3").Options()
	if !o.ContextTimeoutEnabled {
		t.Error("it ignores context deadlines")
	}
	// go-redis keeps 0 for "once".
	wantEqual(t, "MaxRetries", o.MaxRetries, 0)
	wantEqual(t, "DialerRetries", o.DialerRetries, 1)
	wantEqual(t, "PoolSize", o.PoolSize, 128)
	wantEqual(t, "ConnMaxIdleTime", o.ConnMaxIdleTime, 4*time.Second)
	wantEqual(t, "PoolFIFO", o.PoolFIFO, true)
	wantEqual(t, "from the URL", []any{o.Addr, o.DB, o.Username, o.Password}, []any{"example.test:7000", 3, "user", "pass"})

	o = open(t, "redis://example.test?pool_size=300&read_timeout=7s&conn_max_idle_time=1m").Options()
	wantEqual(t, "from the query", []any{o.PoolSize, o.ReadTimeout, o.ConnMaxIdleTime}, []any{300, 7 * time.Second, time.Minute})

	if o := open(t, "rediss://example.test").Options(); o.TLSConfig == nil {
		t.Error("rediss without TLS")
	}
}

// TestOpenRedisKeepsSecrets covers B48: a URL that cannot be read is not repeated.
func TestOpenRedisKeepsSecrets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"http://user:s3cret@example.test", "redis://user:s3cret@example.test:port", "redis://user:s3cret@example.test/db",
		"redis://user:s3cret%zz@example.test", "s3cret", "redis://user:s3cret@example.test?pool_size=many", "\x00s3cret",
	} {
		client, err := pool.OpenRedis(url)
		if err == nil || client != nil {
			t.Errorf("OpenRedis(%q): no error", url)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("OpenRedis(%q): the error repeats the secret: %v", url, err)
		}
	}
}

// TestWrongPassword covers that credentials end Run at start, and stay out of errors and logs (B48).
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	mini.RequireAuth("right")
	t.Run("miniredis", func(t *testing.T) { refuse(t, mini.Addr()) })
	t.Run("redis", func(t *testing.T) {
		private := testredis.Server(t, redisproc.Config{})
		if err := testredis.Client(t, private.Addr()).ConfigSet(t.Context(), "requirepass", "right").Err(); err != nil {
			t.Fatal(err)
		}
		refuse(t, private.Addr())
	})
}

func refuse(t *testing.T, addr string) {
	t.Helper()
	for name, userinfo := range map[string]string{"wrong": ":wr0ng-s3cret@", "none": ""} {
		logs := &recorder{}
		cfg := valid(t)
		cfg.Client, cfg.Logger = open(t, "redis://"+userinfo+addr), logs.logger()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := pool.New(cfg).Run(ctx)
		cancel()
		if !errors.Is(err, pool.ErrRefused) {
			t.Errorf("%s password: %v, want ErrRefused", name, err)
			continue
		}
		if all := err.Error() + strings.Join(logs.matching(), "\n"); strings.Contains(all, "s3cret") {
			t.Errorf("the password is told: %s", all)
		}
	}
}

// TestOldServer covers R5: versions without what the scripts need are refused, unknown ones are not.
func TestOldServer(t *testing.T) {
	t.Parallel()
	for version, refused := range map[string]bool{
		"6.0.16": true, "5.0.14": true, "6.1.240": true, "6.2.0": false, "7.0.15": false, "10.0.0": false, "unstable": false, "": false,
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			mini := testredis.Mini(t)
			mini.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
				if cmd != "INFO" {
					return false
				}
				c.WriteBulk("# Server\r\nredis_version:" + version + "\r\nredis_mode:standalone\r\n")
				return true
			})
			cfg := valid(t)
			cfg.Client, cfg.Logger = testredis.Client(t, mini.Addr()), (&recorder{}).logger()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if !refused {
				cfg.Handler = function(ackAll)
				if _, err := mini.Push(queue, body(1, 0)); err != nil {
					t.Fatal(err)
				}
				p := pool.New(cfg)
				ended := make(chan error, 1)
				go func() { ended <- p.Run(ctx) }()
				testredis.Eventually(t, patience, func() bool {
					s := p.Stats()
					return len(s.Queues) == 1 && s.Queues[0].Acked == 1
				}, "the message is acked")
				cancel()
				if err := receive(t, ended, "Run's end"); err != nil {
					t.Error(err)
				}
				return
			}
			defer cancel()
			err := pool.New(cfg).Run(ctx)
			if !errors.Is(err, pool.ErrRefused) || !strings.Contains(err.Error(), version) {
				t.Errorf("Run: %v, want ErrRefused and the version", err)
			}
		})
	}
}

// TestServerAwayAtStart covers R1: a pool that starts before its server waits for it.
func TestServerAwayAtStart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		proxy := faultproxy.Start(t, r.Addr)
		proxy.Refuse(true)
		cfg := r.config(function(ackAll))
		cfg.Client = open(t, r.Via(proxy.Addr()))
		r.push(bodies(20)...)
		p := r.start(cfg)
		testredis.Eventually(t, patience, func() bool {
			return len(r.logs.matching("WARN redis is not available yet")) == 1 &&
				len(r.logs.matching("WARN reserving is held up")) == 1
		}, "the outage is logged")
		proxy.Refuse(false)
		wantEqual(t, "acked", p.settled(20).Acked, 20)
		r.awaitSettled()
		if n := len(r.logs.matching("INFO reserving works again")); n != 1 {
			t.Errorf("the recovery is logged %d times", n)
		}
	})
}

// TestForbiddenCommands covers that INFO, CLIENT and the blocking commands are conveniences: without them a
// pool polls.
func TestForbiddenCommands(t *testing.T) {
	t.Parallel()
	private := testredis.Server(t, redisproc.Config{})
	admin := testredis.Client(t, private.Addr())
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "worker", "on", ">pw", "~*", "+@all",
		"-info", "-client", "-blmove", "-blpop").Err(); err != nil {
		t.Fatal(err)
	}
	for _, layout := range []pool.Layout{pool.Legacy, pool.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, testredis.Backend{Client: admin, Prefix: testredis.Prefix(t)}, layout)
			cfg := r.config(function(ackAll))
			cfg.Client = open(t, "redis://worker:pw@"+private.Addr())
			cfg.PollInterval = 50 * time.Millisecond
			p := r.start(cfg)
			for i := range 3 {
				r.push(body(i, 0)) // each finds the queue empty
				p.settled(i + 1)
			}
			r.awaitSettled()
		})
	}
}
