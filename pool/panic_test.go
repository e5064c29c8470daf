package pool_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// endings are the ways in which a run ends badly (B20), each at its message's first delivery alone.
var endings = []string{
	"string", "error", "nil map", "goexit", "deferred", "middleware", "in OnError", "goexit in OnError",
	"in OnUnknownURN", "goexit in OnUnknownURN", "in policy", "goexit in policy",
}

const (
	panickingPolicy = 100 // attempts of messages whose backoff policy panics, at reserve
	exitingPolicy   = 200
	mostAttempts    = 1000
)

// accident is what a message's text says about how it ends.
func accident(d envelope.Envelope) string {
	var data struct{ End string }
	if err := d.Bind(&data); err != nil {
		return err.Error()
	}
	return data.End
}

// mine is a handler full of accidents, and the hooks that go with it.
type mine struct {
	seen sync.Map // ids that had their accident
}

// once is true for the first call with a message's id.
func (m *mine) once(id string) bool {
	_, again := m.seen.LoadOrStore(id, true)
	return !again
}

func (m *mine) handle(_ context.Context, d *delivery.Delivery) error {
	end := accident(d.Envelope)
	if end == "" || end == "middleware" || !m.once(d.Meta.ID) {
		return nil
	}
	switch end {
	case "string":
		panic(strings.Repeat("é", 5000))
	case "error":
		panic(errBoom)
	case "nil map":
		var nothing map[string]int
		nothing[end]++ //nolint:staticcheck // the accident
	case "goexit":
		runtime.Goexit()
	case "deferred":
		defer func() { panic("deferred") }()
		return nil
	}
	return errBoom // the accident is in what is called next
}

func (m *mine) middleware(next delivery.Handler) delivery.Handler {
	return delivery.HandlerFunc(func(ctx context.Context, d *delivery.Delivery) error {
		if accident(d.Envelope) == "middleware" && m.once(d.Meta.ID) {
			panic("middleware")
		}
		return next.Handle(ctx, d)
	})
}

func (m *mine) onUnknownURN(_ context.Context, _ error, env envelope.Envelope, _ string) error {
	if m.once(env.Meta.ID) {
		crash(accident(env), "OnUnknownURN")
	}
	return nil
}

func (m *mine) onError(_ context.Context, _ error, env envelope.Envelope, _ string) {
	crash(accident(env), "OnError")
}

func (m *mine) policy(k int64) float64 {
	switch k {
	case panickingPolicy:
		crash("in policy", "policy")
	case exitingPolicy:
		crash("goexit in policy", "policy")
	}
	return 0
}

// crash has the accident that is meant to happen in a place.
func crash(end, place string) {
	switch end {
	case "in " + place:
		panic(place)
	case "goexit in " + place:
		runtime.Goexit()
	}
}

// accidents are n messages of which every third ends badly.
func accidents(n int) (texts []string, perEnding int) {
	for i := range n {
		if i%3 != 0 {
			texts = append(texts, body(i, 0))
			continue
		}
		end, attempts := endings[i/3%len(endings)], int64(0)
		switch end {
		case "string": // and given up by it
			attempts = mostAttempts - 1
		case "in policy":
			attempts = panickingPolicy - 1
		case "goexit in policy":
			attempts = exitingPolicy - 1
		}
		text := bodyWith(i, fmt.Sprintf(`{"End":%q}`, end), attempts)
		if strings.HasSuffix(end, "OnUnknownURN") {
			text = strings.Replace(text, urn, unheard, 1)
		}
		texts = append(texts, text)
	}
	return texts, n / 3 / len(endings)
}

// TestPanics covers B20: whatever a user's function does, the process lives, every message comes to its end,
// and as many workers are left as were asked for.
func TestPanics(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		const n, rest = 1000, 28
		texts, per := accidents(n - rest)
		for i := range rest {
			texts = append(texts, body(n-rest+i, 0))
		}
		m := &mine{}
		mux := function(m.handle)
		b := r.block()
		mux.Register("urn:babel:barrier", b)
		mux.Use(m.middleware)
		var stacks atomic.Int64
		cfg := r.config(mux)
		cfg.Concurrency, cfg.Prefetch, cfg.RetryAfter = 8, 64, 6*time.Second // none may run out, but those of what is left
		cfg.MaxAttempts, cfg.LegacyRetry, cfg.BackoffPolicy = mostAttempts, pool.Requeue, m.policy
		cfg.OnUnknownURN = m.onUnknownURN
		cfg.OnError = func(ctx context.Context, err error, env envelope.Envelope, raw string) {
			var p *router.PanicError
			if errors.As(err, &p) && strings.Contains(string(p.Stack), "panic_test.go") {
				stacks.Add(1)
			}
			m.onError(ctx, err, env, raw)
		}
		r.push(texts...)
		p := r.start(cfg)
		s := r.await("all have come to their end", func(s state) bool {
			return len(s.Dead) == per && p.stats().Acked == int64(n-per) && len(s.Ready)+len(s.InFlight)+len(s.Delayed) == 0
		})

		record := s.Dead[0]
		text := "panic: " + strings.Repeat("é", 5000)
		wantWords(t, record, `"reason":"failed"`, `"exception":"*router.PanicError"`, `"error":"`+text[:2047]+`","exception"`)
		crashed := int64(per) * 8 // the first six, and the two in OnUnknownURN
		counts := p.stats()
		wantEqual(t, "failed, panics", []int64{counts.Failed, counts.Panics}, []int64{crashed + 4*int64(per), crashed})
		wantEqual(t, "panics with their stacks", stacks.Load(), int64(per)*6) // Goexit has none
		if r.layout == pool.Zset {
			wantEqual(t, "left, because the policy failed", counts.Left, int64(per)*2)
		}
		for _, line := range []string{"handler panicked", "OnError panicked", "OnError failed"} {
			if len(r.logs.matching("ERROR "+line)) == 0 {
				t.Errorf("%q is not logged", line)
			}
		}

		// The workers that are left: eight run, and no more while sixteen are there.
		for i := range 16 {
			r.push(strings.Replace(body(n+i, 0), urn, "urn:babel:barrier", 1))
		}
		collect(t, b.running, 8, "eight run at once")
		r.await("all are reserved", func(s state) bool { return len(s.InFlight) == 16 })
		wantEqual(t, "started", p.stats().Started-counts.Started, 8)
		b.letGo()
		r.awaitSettled()
	})
}
