package router

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/babelpool/babelpool/delivery"
)

const (
	noticeEvery = time.Minute
	noticeMost  = 1000 // remembered at a time; hostile URNs must not fill memory or the log
)

// notices logs what happens to single messages, each kind of thing once a minute at most: a queue that fails
// must not flood the log. Bodies are never logged; id and URN are (B48).
type notices struct {
	log *slog.Logger

	mu    sync.Mutex
	again map[string]time.Time // from when a notice may be logged anew; zero = never
}

func newNotices(log *slog.Logger) *notices {
	return &notices{log: log, again: map[string]time.Time{}}
}

// due reports whether a notice may be logged now, and remembers it. every 0 is once per process.
func (n *notices) due(key string, every time.Duration) bool {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if at, ok := n.again[key]; ok && (at.IsZero() || now.Before(at)) {
		return false
	}
	if len(n.again) >= noticeMost {
		for k, at := range n.again {
			if !at.IsZero() && !now.Before(at) {
				delete(n.again, k)
			}
		}
		if len(n.again) >= noticeMost {
			return false
		}
	}
	n.again[key] = time.Time{}
	if every > 0 {
		n.again[key] = now.Add(every)
	}
	return true
}

func (n *notices) unknownURN(queue, urn string) {
	if n.due("urn\x00"+queue+"\x00"+urn, noticeEvery) {
		n.log.Warn("no handler for URN", "queue", queue, "urn", urn)
	}
}

func (n *notices) failed(queue string, d *delivery.Delivery, err error) {
	attrs := []any{"queue", queue, "urn", d.URN, "id", d.Meta.ID, "delivery", d.Number, "error", err}
	var p *PanicError
	if errors.As(err, &p) {
		if n.due("panic\x00"+queue+"\x00"+d.URN, noticeEvery) {
			n.log.Error("handler panicked", append(attrs, "stack", string(p.Stack))...)
		}
		return
	}
	if n.due("failed\x00"+queue+"\x00"+d.URN, noticeEvery) {
		n.log.Warn("handler failed", attrs...)
	}
}

func (n *notices) poison(queue string, err error) {
	if n.due("poison\x00"+queue, noticeEvery) {
		n.log.Warn("message is no acceptable envelope", "queue", queue, "error", err)
	}
}

func (n *notices) forbidden(pointer string, d *delivery.Delivery) {
	if n.due("forbidden\x00"+pointer, 0) {
		n.log.Warn("message has a key that the contract forbids; it is never written (E5)",
			"key", pointer, "queue", d.Queue, "urn", d.URN, "id", d.Meta.ID, "lang", d.Meta.Lang)
	}
}
