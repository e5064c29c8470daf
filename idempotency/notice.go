package idempotency

import (
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/babelpool/babelpool/delivery"
)

const (
	noticeEvery = time.Minute
	mostName    = 256 // bytes of an id or URN that are shown; they come from the message
)

// notice is one kind of line in the log, written at most once a minute: a store that is away fails with every message.
type notice struct {
	mu     sync.Mutex
	next   time.Time
	silent int // since the last line
}

// tell logs what could not be done for a message: its id and URN, never its body (B48).
func (n *notice) tell(log *slog.Logger, text string, d *delivery.Delivery, err error) {
	now := time.Now()
	n.mu.Lock()
	if now.Before(n.next) {
		n.silent++
		n.mu.Unlock()
		return
	}
	more := n.silent
	n.next, n.silent = now.Add(noticeEvery), 0
	n.mu.Unlock()
	if log == nil {
		log = slog.Default()
	}
	log.Warn(text, "queue", d.Queue, "urn", short(d.URN), "id", short(d.Meta.ID), "error", err, "suppressed", more)
}

// short is the beginning of a text, cut between characters.
func short(text string) string {
	if len(text) <= mostName {
		return text
	}
	end := mostName
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
