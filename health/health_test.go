package health_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/health"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) { testredis.Main(m) }

// fixed is a pool that is always the same.
type fixed pool.Health

func (f fixed) Health() pool.Health { return pool.Health(f) }

var (
	well     = fixed{State: pool.Running, Live: true, Ready: true}
	draining = fixed{State: pool.Draining, Live: true, Reasons: []string{"the pool is draining"}}
	away     = fixed{State: pool.Running, Live: true, Reasons: []string{`queue "a" (zset): redis has been away for 42s`}}
	stuck    = fixed{State: pool.Running, Reasons: []string{`queue "a" (zset): the acker has been stuck for 1m1s`}}
)

func get(t *testing.T, h http.Handler, method, path string) (int, health.Answer) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
	var a health.Answer
	if w.Header().Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Errorf("%s: %v", w.Body, err)
		}
	}
	return w.Code, a
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	ok := func(states ...string) health.Answer { return health.Answer{OK: true, States: states} }
	for name, tc := range map[string]struct {
		pools       []health.Source
		live, ready int
		alive, fit  health.Answer
	}{
		"well":     {[]health.Source{well}, 200, 200, ok("running"), ok("running")},
		"no pools": {nil, 200, 200, ok(), ok()},
		"draining": {
			[]health.Source{draining}, 200, 503, ok("draining"),
			health.Answer{States: []string{"draining"}, Reasons: draining.Reasons},
		},
		"one of two is away": {
			[]health.Source{well, away}, 200, 503, ok("running", "running"),
			health.Answer{States: []string{"running", "running"}, Reasons: away.Reasons},
		},
		"two are ill": {
			[]health.Source{stuck, away}, 503, 503,
			health.Answer{States: []string{"running", "running"}, Reasons: stuck.Reasons},
			health.Answer{States: []string{"running", "running"}, Reasons: append(append([]string{}, stuck.Reasons...), away.Reasons...)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := health.Handler(tc.pools...)
			for path, want := range map[string]struct {
				code   int
				answer health.Answer
			}{"/livez": {tc.live, tc.alive}, "/readyz": {tc.ready, tc.fit}} {
				code, answer := get(t, h, http.MethodGet, path)
				if diff := cmp.Diff(want.answer, answer); code != want.code || diff != "" {
					t.Errorf("%s: %d, want %d (-want +got):\n%s", path, code, want.code, diff)
				}
			}
		})
	}
}

func TestOtherRequests(t *testing.T) {
	t.Parallel()
	h := health.Handler(well)
	for request, want := range map[[2]string]int{
		{http.MethodHead, "/livez"}: 200, {http.MethodPost, "/livez"}: 405, {http.MethodGet, "/"}: 404, {http.MethodGet, "/livez/x"}: 404,
	} {
		if code, _ := get(t, h, request[0], request[1]); code != want {
			t.Errorf("%s: %d, want %d", request, code, want)
		}
	}
}

// TestAPool: the probes of a real one, from its start to its end.
func TestAPool(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, b testredis.Backend) {
		for _, layout := range []pool.Layout{pool.Legacy, pool.Zset} {
			p, stop := start(t, b, layout)
			h := health.Handler(p)
			testredis.Eventually(t, patience, func() bool { code, _ := get(t, h, http.MethodGet, "/readyz"); return code == 200 }, "it is ready")
			stop()
			for _, path := range []string{"/livez", "/readyz"} {
				code, answer := get(t, h, http.MethodGet, path)
				if diff := cmp.Diff(health.Answer{States: []string{"stopped"}, Reasons: []string{"the pool is stopped"}}, answer); code != 503 || diff != "" {
					t.Errorf("%s: %d (-want +got):\n%s", path, code, diff)
				}
			}
		}
	})
}

// start runs a pool on an empty queue.
func start(t *testing.T, b testredis.Backend, layout pool.Layout) (p *pool.Pool, stop func()) {
	t.Helper()
	p = pool.New(pool.Config{
		Client: b.Client, KeyPrefix: b.Prefix, Queues: []pool.Queue{{Name: "orders"}}, Layout: layout,
		Handler: delivery.HandlerFunc(func(context.Context, *delivery.Delivery) error { return nil }),
		Logger:  slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return p, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}
