package metrics

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/router"
)

// The outcomes of a handler's run.
const (
	succeeded = "success"
	failed    = "failure"
	panicked  = "panic" // or runtime.Goexit
	nothing   = ""      // none was run
)

// epoch makes a time one reading of the clock instead of two: every message takes two times.
var epoch = time.Now()

const (
	other   = "other"
	mostURN = 200 // bytes of a URN that is shown unasked; a longer one is no name
)

// handlers is the time handlers took, by URN.
type handlers struct {
	seconds *prometheus.HistogramVec
	most    int
	longest int // of a URN with a series of its own
	others  *series

	mu    sync.Mutex
	known atomic.Pointer[map[string]*series] // replaced whole, never changed
}

// series are one URN's. Success, the common outcome, is looked up once.
type series struct {
	label   string
	success prometheus.Observer
}

func newHandlers(cfg Config) *handlers {
	buckets := cfg.HandlerBuckets
	if len(buckets) == 0 {
		buckets = []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5, 10, 60, 300, 600}
	}
	h := &handlers{most: cfg.MaxURNs, longest: mostURN, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "handler_duration_seconds", Buckets: buckets,
		Help: "Time that handlers took, by URN and outcome.",
	}, []string{"urn", "outcome"})}
	if h.most <= 0 {
		h.most = defaultMaxURNs
	}
	h.others = h.series(other)
	known := map[string]*series{}
	for _, urn := range cfg.URNs {
		known[urn] = h.series(printable(urn))
		h.longest = max(h.longest, len(urn))
	}
	if len(cfg.URNs) > 0 {
		h.most = len(known)
	}
	h.known.Store(&known)
	return h
}

func (h *handlers) series(label string) *series {
	return &series{label, h.seconds.WithLabelValues(label, succeeded)}
}

// of is the series of a URN; a new one gets its own while there is room. No lock is taken for what is known, nor once
// all room is taken.
func (h *handlers) of(urn string) *series {
	if len(urn) > h.longest { // before it is hashed
		return h.others
	}
	known := *h.known.Load()
	if s, ok := known[urn]; ok {
		return s
	}
	if len(known) >= h.most || urn == "" {
		return h.others
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	known = *h.known.Load() // somebody else may have been here
	if s, ok := known[urn]; ok {
		return s
	}
	if len(known) >= h.most {
		return h.others
	}
	urn = strings.Clone(urn) // it is part of its message, whose body would be kept
	more := maps.Clone(known)
	more[urn] = h.series(printable(urn))
	h.known.Store(&more)
	return more[urn]
}

func (h *handlers) observe(urn, outcome string, took time.Duration) {
	s := h.of(urn)
	if outcome == succeeded {
		s.success.Observe(took.Seconds())
		return
	}
	h.seconds.WithLabelValues(s.label, outcome).Observe(took.Seconds())
}

// printable makes a label of a text: one that is not UTF-8 would fail every scrape. Different texts stay different.
func printable(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strconv.QuoteToASCII(text)
}

// timed is a handler whose runs are observed.
type timed struct {
	handlers *handlers
	next     delivery.Handler
}

// Handle runs the handler. What it panics with goes on.
func (t timed) Handle(ctx context.Context, d *delivery.Delivery) error {
	began, outcome := time.Since(epoch), panicked // until the handler has said otherwise
	defer func() {
		if outcome != nothing {
			t.handlers.observe(d.URN, outcome, time.Since(epoch)-began)
		}
	}()
	err := t.next.Handle(ctx, d)
	switch {
	case err == nil:
		outcome = succeeded
	case errors.Is(err, router.ErrUnknownURN):
		outcome = nothing // and such URNs get no series
	default:
		outcome = failed
	}
	return err
}
