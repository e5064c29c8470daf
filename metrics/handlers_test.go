package metrics_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
	"weak"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/metrics"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

func delivered(urn string) *delivery.Delivery {
	return &delivery.Delivery{Envelope: envelope.Envelope{URN: urn}}
}

// TestHostileURNs: whatever URNs come, the series are bounded and every scrape succeeds (B48).
func TestHostileURNs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long", 100000)
	for name, tc := range map[string]struct {
		cfg  metrics.Config
		want int // values of the label
	}{
		"first come": {metrics.Config{MaxURNs: 10}, 11},
		"default":    {metrics.Config{}, 101},
		"named":      {metrics.Config{URNs: []string{good, bad, "\xff"}}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := metrics.New(tc.cfg)
			h := m.Middleware(function(func(d *delivery.Delivery) error {
				if len(d.URN)%2 == 0 {
					return errBoom
				}
				return nil
			}))
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for j := range 1000 {
						for _, urn := range []string{
							good, bad, "", "\xff", "\xfe", "a\nb{c=\"d\"}\\", long, other(i, j),
						} {
							_ = h.Handle(context.Background(), delivered(urn)) // fails for half of them
						}
					}
				})
			}
			wg.Wait()
			f := gather(t, registered(t, m, &source{}))
			urns, runs := map[string]bool{}, uint64(0)
			for _, series := range f["babelpool_handler_duration_seconds"].GetMetric() {
				for _, l := range series.GetLabel() {
					if l.GetName() == "urn" {
						urns[l.GetValue()] = true
						if len(l.GetValue()) > 300 {
							t.Errorf("a label of %d bytes", len(l.GetValue()))
						}
					}
				}
				runs += series.GetHistogram().GetSampleCount()
			}
			if len(urns) != tc.want || !urns["other"] {
				t.Errorf("%d URNs, want %d", len(urns), tc.want)
			}
			if runs != 4*1000*8 {
				t.Errorf("%d runs are counted", runs)
			}
		})
	}
}

func other(i, j int) string { return fmt.Sprintf("urn:%d:%d", i, j) }

// TestHostileQueueNames: what is not UTF-8 fails no scrape, and two names stay two.
func TestHostileQueueNames(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	s := &source{}
	for _, name := range []string{"\xff", "\xfe", "a\nb"} {
		s.stats.Queues = append(s.stats.Queues, pool.QueueStats{Name: name, Layout: pool.Zset})
		s.health.Queues = append(s.health.Queues, pool.QueueHealth{Name: name, Layout: pool.Zset})
		s.depths = append(s.depths, pool.QueueDepth{Name: name, Layout: pool.Zset})
		m.OnCall(pool.Call{Queue: name, Layout: pool.Zset, Op: pool.CallSettle, Err: errBoom})
	}
	f := gather(t, registered(t, m, s))
	for _, name := range []string{"babelpool_paused", "babelpool_redis_away_seconds", "babelpool_depth_up", "babelpool_redis_call_errors_total"} {
		if n := len(f[name].GetMetric()); n != 3 {
			t.Errorf("%d series of %s", n, name)
		}
	}
}

// TestOutcomes: a handler's outcome reaches the pool as it is, and the histogram by its kind.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	ended := make(chan struct{})
	run := func(f func(*delivery.Delivery) error) (panicked any, err error) {
		go func() {
			defer func() { ended <- struct{}{} }()
			defer func() { panicked = recover() }()
			err = m.Middleware(function(f)).Handle(context.Background(), delivered(good))
		}()
		<-ended
		return panicked, err
	}
	verdict := delivery.RetryAfter(1, errBoom)
	for name, tc := range map[string]struct {
		handler func(*delivery.Delivery) error
		err     error
		panics  any
	}{
		"success": {func(*delivery.Delivery) error { return nil }, nil, nil},
		"verdict": {func(*delivery.Delivery) error { return verdict }, verdict, nil},
		"failure": {func(*delivery.Delivery) error { return errBoom }, errBoom, nil},
		"panic":   {func(*delivery.Delivery) error { panic("broken") }, nil, "broken"},
		"exit":    {func(*delivery.Delivery) error { runtime.Goexit(); return nil }, nil, nil},
		"unknown": {func(*delivery.Delivery) error { return router.ErrUnknownURN }, router.ErrUnknownURN, nil},
	} {
		if panicked, err := run(tc.handler); err != tc.err || panicked != tc.panics { //nolint:errorlint // the very error is meant
			t.Errorf("%s: %v, %v", name, err, panicked)
		}
	}
	f := gather(t, registered(t, m, &source{}))
	want(t, f, 1, "babelpool_handler_duration_seconds", "urn", good, "outcome", "success")
	want(t, f, 2, "babelpool_handler_duration_seconds", "urn", good, "outcome", "failure")
	want(t, f, 2, "babelpool_handler_duration_seconds", "urn", good, "outcome", "panic")
}

// TestNoBodyIsKept: a URN is part of its message's text, which must go when the message does.
func TestNoBodyIsKept(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Config{})
	h := m.Middleware(function(func(*delivery.Delivery) error { return nil }))
	text := []byte(good + strings.Repeat("x", 4096))
	kept := weak.Make(&text[0])
	_ = h.Handle(t.Context(), delivered(unsafe.String(&text[0], len(good)))) // returns nil
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the text of a message is kept")
	}
	want(t, gather(t, registered(t, m, &source{})), 1, "babelpool_handler_duration_seconds", "urn", good, "outcome", "success")
}

func TestBucketsMustAscend(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	metrics.New(metrics.Config{HandlerBuckets: []float64{1, 1}})
}
