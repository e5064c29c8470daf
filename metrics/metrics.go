package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
)

const (
	namespace           = "babelpool"
	defaultMaxURNs      = 100
	defaultDepthTimeout = 2 * time.Second
)

// Config configures Metrics. The zero value of every field is its default.
type Config struct {
	// URNs are those whose handlers are timed each by itself; all others are timed together as "other". Defaults to nil:
	// the first MaxURNs whose handlers run. With a router.Mux these can only be URNs that it has handlers for; name them
	// here when your handler takes whatever comes, or the first to come have the series.
	URNs []string
	// MaxURNs bounds the URNs when none are named. Defaults to 100.
	MaxURNs int
	// HandlerBuckets are the bounds of the handler time's histogram, in seconds. Defaults to 0.1 ms to 10 min.
	HandlerBuckets []float64
	// NoDepths leaves out what must be asked of Redis at each scrape. Of many processes on the same queues, one or two
	// are enough to tell.
	NoDepths bool
	// DepthTimeout bounds those questions, where the client honours deadlines. Keep it below Prometheus's scrape_timeout.
	// Defaults to 2 s.
	DepthTimeout time.Duration
}

// Metrics is what one pool's metrics live in. Make one with New for each pool. All methods are safe for concurrent use.
type Metrics struct {
	noDepths     bool
	depthTimeout time.Duration
	handlers     *handlers
	calls        *calls
}

// New makes Metrics. It panics when HandlerBuckets are not in ascending order.
func New(cfg Config) *Metrics {
	m := &Metrics{noDepths: cfg.NoDepths, depthTimeout: cfg.DepthTimeout, handlers: newHandlers(cfg), calls: newCalls()}
	if m.depthTimeout <= 0 {
		m.depthTimeout = defaultDepthTimeout
	}
	return m
}

// Instrument returns cfg with its handlers timed and its calls to Redis observed; an OnCall that it has is called too. The
// pool made of it goes to Collector.
func (m *Metrics) Instrument(cfg pool.Config) pool.Config {
	others := cfg.OnCall
	cfg.OnCall = m.OnCall
	if others != nil {
		cfg.OnCall = func(c pool.Call) { m.OnCall(c); others(c) }
	}
	if cfg.Handler != nil {
		cfg.Handler = m.Middleware(cfg.Handler)
	}
	cfg.Queues = slices.Clone(cfg.Queues) // the caller's stay as they are
	for i, q := range cfg.Queues {
		if q.Handler != nil {
			cfg.Queues[i].Handler = m.Middleware(q.Handler)
		}
	}
	return cfg
}

// Middleware times a handler. It is a router.Middleware, for those who do not Instrument: with mux.Use it times what
// stands inside it alone. Messages without a handler are not timed, as none runs.
func (m *Metrics) Middleware(next delivery.Handler) delivery.Handler { return timed{m.handlers, next} }

// OnCall observes a call to Redis. It is a pool.Config.OnCall, for those who do not Instrument.
func (m *Metrics) OnCall(c pool.Call) { m.calls.observe(c) }

// Collector collects all metrics of a pool. Register it once.
func (m *Metrics) Collector(p Source) prometheus.Collector { return &collector{metrics: m, source: p} }
