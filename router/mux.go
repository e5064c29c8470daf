package router

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/babelpool/babelpool/delivery"
)

// Middleware wraps a handler in another.
type Middleware func(next delivery.Handler) delivery.Handler

// Mux dispatches deliveries by URN. The zero value is not usable; make one with NewMux. Handlers may be
// registered while a pool runs; dispatch takes no lock.
type Mux struct {
	mu         sync.Mutex
	handlers   map[string]delivery.Handler // as registered
	middleware []Middleware
	composed   atomic.Pointer[map[string]delivery.Handler] // wrapped; replaced whole, never changed
}

// NewMux makes an empty Mux.
func NewMux() *Mux {
	m := &Mux{handlers: map[string]delivery.Handler{}}
	m.composed.Store(&map[string]delivery.Handler{})
	return m
}

// Register registers the handler for a URN, as it stands in job or its alias after trimming (E3). It panics when the
// URN is empty or has a handler already, or the handler is nil: each is a mistake in the program.
func (m *Mux) Register(urn string, h delivery.Handler) {
	if urn == "" || h == nil {
		panic("router: Register needs a URN and a handler")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.handlers[urn]; ok {
		panic(fmt.Sprintf("router: two handlers for the URN %q", urn))
	}
	m.handlers[urn] = h
	composed := maps.Clone(*m.composed.Load())
	composed[urn] = m.wrap(h)
	m.composed.Store(&composed)
}

// HandleFunc registers a function for a URN, as Register does.
func (m *Mux) HandleFunc(urn string, f func(ctx context.Context, d *delivery.Delivery) error) {
	if f == nil {
		panic("router: HandleFunc needs a function")
	}
	m.Register(urn, delivery.HandlerFunc(f))
}

// Use adds middleware around every handler, those registered before included. The first added is the
// outermost. Middleware does not see messages without a handler.
func (m *Mux) Use(middleware ...Middleware) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.middleware = append(m.middleware, middleware...)
	composed := make(map[string]delivery.Handler, len(m.handlers))
	for urn, h := range m.handlers {
		composed[urn] = m.wrap(h)
	}
	m.composed.Store(&composed)
}

func (m *Mux) wrap(h delivery.Handler) delivery.Handler {
	for i := len(m.middleware) - 1; i >= 0; i-- {
		h = m.middleware[i](h)
	}
	return h
}

// Handle runs the handler of the delivery's URN. It returns ErrUnknownURN when there is none.
func (m *Mux) Handle(ctx context.Context, d *delivery.Delivery) error {
	h, ok := (*m.composed.Load())[d.URN]
	if !ok {
		return ErrUnknownURN
	}
	return h.Handle(ctx, d)
}
