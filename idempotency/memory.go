package idempotency

import (
	"container/list"
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"time"
)

// longID is the most bytes of an id that a Memory keeps as they are. Of longer ones it keeps the digest, so that what it
// holds is bounded whatever producers send.
const longID = 128

// MemoryConfig configures a Memory. The zero value of a field is its default.
type MemoryConfig struct {
	// Most is how many ids are remembered; beyond it the oldest is forgotten. Defaults to 100,000: up to some 25 MB.
	Most int
	// TTL is how long an id is remembered. Defaults to 0: until Most is reached.
	TTL time.Duration
}

// Memory is a Store in the process's own memory: for tests, and for queues that one process alone consumes. It forgets
// everything when the process ends.
type Memory struct {
	most int
	ttl  time.Duration

	mu   sync.Mutex
	ids  map[string]*list.Element
	aged list.List // of remembered, the oldest first
}

// remembered is one id, and when it was noted.
type remembered struct {
	key string
	at  time.Time
}

// NewMemory makes an empty Memory. It panics when a field is negative.
func NewMemory(cfg MemoryConfig) *Memory {
	if cfg.Most < 0 || cfg.TTL < 0 {
		panic("idempotency: Most and TTL must not be negative")
	}
	if cfg.Most == 0 {
		cfg.Most = 100_000
	}
	return &Memory{most: cfg.Most, ttl: cfg.TTL, ids: map[string]*list.Element{}}
}

// Seen reports whether an id is remembered.
func (m *Memory) Seen(_ context.Context, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	_, ok := m.ids[memoryKey(id)]
	return ok, nil
}

// Remember notes an id. One that is remembered keeps its time.
func (m *Memory) Remember(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expire()
	key := memoryKey(id)
	if _, ok := m.ids[key]; ok {
		return nil
	}
	if len(m.ids) == m.most {
		m.drop(m.aged.Front())
	}
	key = strings.Clone(key) // the id is part of the text of a whole batch
	m.ids[key] = m.aged.PushBack(remembered{key, time.Now()})
	return nil
}

// Forget takes the note of an id back.
func (m *Memory) Forget(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.ids[memoryKey(id)]; ok {
		m.drop(e)
	}
	return nil
}

// expire forgets what is past its time, which stands at the front.
func (m *Memory) expire() {
	if m.ttl == 0 {
		return
	}
	for now := time.Now(); ; {
		e := m.aged.Front()
		if e == nil || now.Sub(e.Value.(remembered).at) < m.ttl {
			return
		}
		m.drop(e)
	}
}

func (m *Memory) drop(e *list.Element) {
	delete(m.ids, e.Value.(remembered).key)
	m.aged.Remove(e)
}

// memoryKey is what stands for an id: itself, or its digest, which is shorter than what stands for itself could be.
func memoryKey(id string) string {
	if len(id) <= longID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + string(sum[:]) + strings.Repeat("\x00", longID)
}
