package securitytest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
)

// requireTLS ends the test where redis-server was built without TLS: a reason to skip, unless that is forbidden.
func requireTLS(t *testing.T) {
	t.Helper()
	testredis.Require(t)
	// One that knows the option ends because there is nothing to listen on.
	out, _ := exec.CommandContext(t.Context(), "redis-server", "--port", "0", "--tls-port", "0", "--save", "").CombinedOutput()
	if !strings.Contains(string(out), "Bad directive") {
		return
	}
	testredis.Missing(t, "this redis-server is built without TLS")
}

// tlsServer starts a server with the pair and returns its rediss:// URL, and the server, which also listens without TLS.
func tlsServer(t *testing.T, p pair, clients string) (string, *redisproc.Server) {
	t.Helper()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	must(t, free.Close())
	server := testredis.Server(t, redisproc.Config{Args: []string{
		"--tls-port", port, "--tls-cert-file", p.cert, "--tls-key-file", p.key, "--tls-ca-cert-file", p.authority,
		"--tls-auth-clients", clients,
	}})
	return "rediss://127.0.0.1:" + port, server
}

var loopback = net.IPv4(127, 0, 0, 1)

// work publishes and consumes ten messages through a client.
func work(t *testing.T, client *redis.Client, layout pool.Layout) {
	t.Helper()
	producer, err := publisher.New(publisher.Config{Client: client, Queue: "orders", Layout: layout})
	must(t, err)
	for range 10 {
		_, err = producer.Publish(t.Context(), "urn:work", nil)
		must(t, err)
	}
	p := start(t, pool.Config{
		Client: client, Queues: []pool.Queue{{Name: "orders"}}, Layout: layout, Logger: slog.New(&testlog.Recorder{}),
		Handler: delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return nil }),
	})
	p.until("all are acked", func(c pool.QueueStats) bool { return c.Acked == 10 })
	must(t, p.stop())
}

// TestTLS: rediss:// works in both layouts, with nothing but the machine's trust in an authority.
func TestTLS(t *testing.T) {
	t.Parallel()
	requireTLS(t)
	url, _ := tlsServer(t, trusted.sign(t, loopback, time.Now().Add(time.Hour)), "no")
	for _, layout := range layouts {
		client := open(t, url)
		if state := client.Options().TLSConfig; state == nil || state.InsecureSkipVerify || state.MinVersion < tls.VersionTLS12 {
			t.Fatalf("OpenRedis does not ask for TLS: %+v", state)
		}
		work(t, client, layout)
	}
}

// TestTLSWithClientCertificates: a server that wants one gets it from a client of the user's own.
func TestTLSWithClientCertificates(t *testing.T) {
	t.Parallel()
	requireTLS(t)
	files := trusted.sign(t, loopback, time.Now().Add(time.Hour))
	url, _ := tlsServer(t, files, "yes")
	options, err := redis.ParseURL(url)
	must(t, err)
	own, err := tls.LoadX509KeyPair(files.cert, files.key)
	must(t, err)
	options.TLSConfig.Certificates = []tls.Certificate{own}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	work(t, client, pool.Legacy)
}

// TestTLSRefused: what makes the server's certificate unacceptable is named, and ends Run at start.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	requireTLS(t)
	stranger, err := newAuthority("stranger")
	must(t, err)
	hour := time.Now().Add(time.Hour)
	for name, row := range map[string]struct {
		files func(t *testing.T) pair
		want  string
		as    any
	}{
		"another authority": {func(t *testing.T) pair { return stranger.sign(t, loopback, hour) }, "unknown authority", new(x509.UnknownAuthorityError)},
		"another host":      {func(t *testing.T) pair { return trusted.sign(t, net.IPv4(10, 1, 2, 3), hour) }, "10.1.2.3", new(x509.HostnameError)},
		"expired":           {func(t *testing.T) pair { return trusted.sign(t, loopback, time.Now().Add(-time.Hour)) }, "expired", new(x509.CertificateInvalidError)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := tlsServer(t, row.files(t), "no")
			url = strings.Replace(url, "://", "://user:"+secretInPassword+"@", 1)
			for _, layout := range layouts {
				logs := &testlog.Recorder{}
				p := start(t, pool.Config{
					Client: open(t, url), Queues: []pool.Queue{{Name: "orders"}}, Layout: layout, Logger: slog.New(logs),
					Handler: delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return nil }),
				})
				testredis.Await(t, p.ended, patience, "Run's end by itself")
				if !errors.Is(p.err, pool.ErrRefused) || !strings.Contains(p.err.Error(), row.want) || !errors.As(p.err, row.as) {
					t.Errorf("Run: %v, want %q", p.err, row.want)
				}
				if found := secretsIn(p.err.Error() + strings.Join(logs.Lines(), "")); found != nil {
					t.Errorf("told: %q", found)
				}
			}
			producer, err := publisher.New(publisher.Config{Client: open(t, url), Queue: "orders"})
			must(t, err)
			_, err = producer.Publish(t.Context(), "urn:work", map[string]string{"card": secretInBody})
			if !errors.Is(err, publisher.ErrRefused) || !strings.Contains(err.Error(), row.want) || secretsIn(err.Error()) != nil {
				t.Errorf("Publish: %v, want ErrRefused and %q", err, row.want)
			}
		})
	}
}

// TestTLSMismatch: one side speaks TLS and the other does not. That may pass, as a proxy in front of Redis starts, so Run
// waits. It says once why, as far as it can be known: a server without TLS does not answer a handshake.
func TestTLSMismatch(t *testing.T) {
	t.Parallel()
	requireTLS(t)
	url, server := tlsServer(t, trusted.sign(t, loopback, time.Now().Add(time.Hour)), "no")
	wanting, _ := tlsServer(t, trusted.sign(t, loopback, time.Now().Add(time.Hour)), "yes")
	for name, row := range map[string]struct{ url, want string }{
		"TLS to a plain port":   {"rediss://" + server.Addr(), "deadline exceeded"},
		"plain to a TLS port":   {strings.Replace(url, "rediss", "redis", 1), ""},
		"no client certificate": {wanting, "certificate required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logs := &testlog.Recorder{}
			p := start(t, pool.Config{
				Client: open(t, row.url), Queues: []pool.Queue{{Name: "orders"}}, Logger: slog.New(logs),
				Handler: delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return nil }),
			})
			testredis.Eventually(t, patience, func() bool {
				return len(logs.With("redis is not available yet", row.want)) == 1 && len(logs.With("reserving is held up", row.want)) == 1
			}, "the reason is logged")
			must(t, p.stop())
		})
	}
}
