package idempotency_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/idempotency"
	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

const patience = 10 * time.Second

var errBoom = errors.New("boom")

// message is a delivery of the message with this id.
func message(id string) *delivery.Delivery {
	return &delivery.Delivery{Envelope: envelope.Envelope{URN: "urn:babel:a", Meta: envelope.Meta{ID: id}}, Queue: "orders"}
}

// store is a Store and Claims in memory, whose calls fail on request.
type store struct {
	memory *idempotency.Memory
	panics bool // Remember does

	mu     sync.Mutex
	fail   map[string]error // by the call's name
	calls  []string
	holds  map[string]string // token by id
	expiry map[string]time.Time
}

func newStore() *store {
	return &store{
		memory: idempotency.NewMemory(idempotency.MemoryConfig{}),
		fail:   map[string]error{}, holds: map[string]string{}, expiry: map[string]time.Time{},
	}
}

func (s *store) called(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, name)
	if s.fail[name] != nil {
		return s.fail[name]
	}
	return ctx.Err()
}

func (s *store) set(call string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[call] = err
}

func (s *store) made() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *store) Seen(ctx context.Context, id string) (bool, error) {
	if err := s.called(ctx, "seen"); err != nil {
		return false, err
	}
	return s.memory.Seen(ctx, id)
}

func (s *store) Remember(ctx context.Context, id string) error {
	if s.panics {
		panic("no room")
	}
	if err := s.called(ctx, "remember"); err != nil {
		return err
	}
	return s.memory.Remember(ctx, id)
}

func (s *store) Forget(ctx context.Context, id string) error { return s.memory.Forget(ctx, id) }

// lose takes the claim of an id from whoever has it.
func (s *store) lose(id string) { s.give(id, "") }

// give gives somebody the claim of an id.
func (s *store) give(id, token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[id], s.expiry[id] = token, time.Now().Add(time.Hour)
}

// Claim carries a claim out even where it reports an error: its reply is lost.
func (s *store) Claim(ctx context.Context, id, token string, expiry time.Duration) (bool, error) {
	err := s.called(ctx, "claim")
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder := s.holds[id]; holder != "" && holder != token && time.Now().Before(s.expiry[id]) {
		return false, err
	}
	s.holds[id], s.expiry[id] = token, time.Now().Add(expiry)
	return err == nil, err
}

func (s *store) Release(ctx context.Context, id, token string) error {
	if err := s.called(ctx, "release"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds[id] == token {
		delete(s.holds, id)
	}
	return nil
}

// holder is the token of who has the claim of an id.
func (s *store) holder(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[id]
}

// wrap is a handler behind the middleware, and what that logs.
func wrap(cfg idempotency.Config, f delivery.HandlerFunc) (delivery.Handler, *testlog.Recorder) {
	logs := &testlog.Recorder{}
	cfg.Logger = slog.New(logs)
	return idempotency.Middleware(cfg)(f), logs
}
