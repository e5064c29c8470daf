package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/metrics"
	"github.com/babelpool/babelpool/pool"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) { testredis.Main(m) }

var errBoom = errors.New("boom")

// start runs a pool with metrics until the test ends, and returns it with the registry it is registered at.
func start(t *testing.T, m *metrics.Metrics, cfg pool.Config) (*pool.Pool, *prometheus.Registry) {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	p := pool.New(m.Instrument(cfg))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.Collector(p))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return p, registry
}

// gather scrapes, and returns the families by name.
func gather(t *testing.T, g prometheus.Gatherer) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := g.Gather()
	if err != nil {
		t.Fatalf("a scrape fails: %v", err)
	}
	families := map[string]*dto.MetricFamily{}
	for _, f := range all {
		families[f.GetName()] = f
	}
	return families
}

// value is what a scrape says of the series with exactly these labels, name and value in turn, and whether there is one.
// Of a histogram it is the count.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) (float64, bool) {
	for _, m := range families[name].GetMetric() {
		if len(m.GetLabel()) != len(labels)/2 {
			continue
		}
		all := true
		for i := 0; i < len(labels); i += 2 {
			found := false
			for _, l := range m.GetLabel() {
				found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
			}
			all = all && found
		}
		if !all {
			continue
		}
		switch {
		case m.GetHistogram() != nil:
			return float64(m.GetHistogram().GetSampleCount()), true
		case m.GetCounter() != nil:
			return m.GetCounter().GetValue(), true
		}
		return m.GetGauge().GetValue(), true
	}
	return 0, false
}

// want compares one series.
func want(t *testing.T, families map[string]*dto.MetricFamily, wanted float64, name string, labels ...string) {
	t.Helper()
	if got, ok := value(families, name, labels...); !ok || got != wanted {
		t.Errorf("%s%v is %v (%t), want %v", name, labels, got, ok, wanted)
	}
}

// function is a handler.
func function(f func(d *delivery.Delivery) error) delivery.Handler {
	return delivery.HandlerFunc(func(_ context.Context, d *delivery.Delivery) error { return f(d) })
}

// source is a pool that says what it is told to.
type source struct {
	stats  pool.Stats
	health pool.Health
	depths []pool.QueueDepth
	err    error
}

func (s *source) Stats() pool.Stats   { return s.stats }
func (s *source) Health() pool.Health { return s.health }
func (s *source) Depths(context.Context) ([]pool.QueueDepth, error) {
	return s.depths, s.err
}

// registered is a registry with a collector of that source.
func registered(t *testing.T, m *metrics.Metrics, s metrics.Source) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.Collector(s))
	return registry
}
