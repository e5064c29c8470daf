package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/babelpool/babelpool/envelope"
)

const (
	urn         = "urn:babel:orders:created"
	queue       = "orders"
	bodyBytes   = 300
	concurrency = 64
	prefetch    = 1024
)

// order is what every handler binds data into.
type order struct {
	OrderID int64  `json:"order_id"`
	Note    string `json:"note"`
}

// work counts handled messages; done is closed at the last.
type work struct {
	total   int64
	handled atomic.Int64
	done    chan struct{}
	started time.Time
	elapsed time.Duration // set by contenders whose winding up is no part of the work
}

func newWork(n int) *work {
	return &work{total: int64(n), done: make(chan struct{}), started: time.Now()}
}

// stop notes the end of the work: what follows, such as closing connections, is not counted.
func (w *work) stop() { w.elapsed = time.Since(w.started) }

func (w *work) count() {
	if w.handled.Add(1) == w.total {
		close(w.done)
	}
}

func (w *work) wait(ctx context.Context) error {
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return errIncomplete
	}
}

// plainEnvelope is the envelope as a consumer without this project would decode it.
type plainEnvelope struct {
	Job  string          `json:"job"`
	Data json.RawMessage `json:"data"`
}

// handlePlain decodes a body with encoding/json, as handlers of other libraries do.
func (w *work) handlePlain(body []byte) error {
	var e plainEnvelope
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal(e.Data, &o); err != nil {
		return err
	}
	w.count()
	return nil
}

func makeBodies(n int) ([]string, error) {
	bodies := make([]string, n)
	for i := range bodies {
		e, err := envelope.New(urn, queue, order{OrderID: int64(i)})
		if err != nil {
			return nil, err
		}
		pad := strings.Repeat("x", max(0, bodyBytes-len(e.Encode())))
		e, err = envelope.New(urn, queue, order{OrderID: int64(i), Note: pad},
			envelope.WithID(e.Meta.ID), envelope.WithTraceID(e.TraceID))
		if err != nil {
			return nil, err
		}
		bodies[i] = e.Encode()
	}
	return bodies, nil
}

// inChunks calls f with slices of a thousand bodies.
func inChunks(bodies []string, f func(part []string) error) error {
	const size = 1000
	for from := 0; from < len(bodies); from += size {
		if err := f(bodies[from:min(from+size, len(bodies))]); err != nil {
			return err
		}
	}
	return nil
}
