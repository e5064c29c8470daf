package router

import (
	"errors"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
)

const (
	noticeEvery = time.Minute
	noticeMost  = 100 // of a kind in a minute; hostile URNs must not fill memory or the log
	mostName    = 256 // bytes of a URN, id or language that are shown; they come from the message
)

// kind is what a notice is about. Each kind has room of its own: a storm of unknown URNs hides no panic.
type kind int

const (
	kindUnknown kind = iota
	kindFailed
	kindPanicked
	kindPoison
	kindGaveUp
	kindForbidden
	kindHook
	kinds
)

// notices logs what happens to single messages, each kind of thing once a minute at most: a queue that fails
// must not flood the log. Bodies are never logged; id and URN are (B48).
type notices struct {
	log *slog.Logger

	mu    sync.Mutex
	again [kinds]map[string]time.Time // from when a notice may be logged anew; zero = never
	full  [kinds]time.Time            // until when nothing of the kind fits in
}

func newNotices(log *slog.Logger) *notices {
	n := &notices{log: log}
	for k := range n.again {
		n.again[k] = map[string]time.Time{}
	}
	return n
}

// due reports whether a notice may be logged now, and remembers it. every 0 is once per process. That a kind has
// come to its limit is logged too: silence would look like health.
func (n *notices) due(k kind, key string, every time.Duration) bool {
	now := time.Now()
	ok, full := n.claim(k, key, now, every)
	if full {
		n.log.Warn("too many different messages fail in the same way; more are counted and not logged for now",
			"limit", noticeMost, "every", noticeEvery)
	}
	return ok
}

// claim is due without the logging. full is true once each time that the kind comes to its limit.
func (n *notices) claim(k kind, key string, now time.Time, every time.Duration) (ok, full bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	again := n.again[k]
	if at, known := again[key]; known && (at.IsZero() || now.Before(at)) {
		return false, false
	}
	if now.Before(n.full[k]) {
		return false, false // before anything is looked through, since each message of a storm comes here
	}
	if len(again) >= noticeMost {
		soonest := now.Add(noticeEvery)
		for other, at := range again {
			switch {
			case at.IsZero():
			case !now.Before(at):
				delete(again, other)
			case at.Before(soonest):
				soonest = at
			}
		}
		if len(again) >= noticeMost {
			n.full[k] = soonest
			return false, true
		}
	}
	again[key] = time.Time{}
	if every > 0 {
		again[key] = now.Add(every)
	}
	return true, false
}

func (n *notices) unknownURN(queue, urn string) {
	urn = short(urn, mostName)
	if n.due(kindUnknown, queue+"\x00"+urn, noticeEvery) {
		n.log.Warn("no handler for URN", "queue", queue, "urn", urn)
	}
}

func (n *notices) failed(queue string, d *delivery.Delivery, err error) {
	urn := short(d.URN, mostName)
	var p *PanicError
	panicked := errors.As(err, &p)
	k := kindFailed
	if panicked {
		k = kindPanicked
	}
	if !n.due(k, queue+"\x00"+urn, noticeEvery) {
		return
	}
	attrs := []any{"queue", queue, "urn", urn, "id", short(d.Meta.ID, mostName), "delivery", d.Number, "error", brief(err)}
	if panicked {
		n.log.Error("handler panicked", append(attrs, "stack", string(p.Stack))...)
		return
	}
	n.log.Warn("handler failed", attrs...)
}

func (n *notices) poison(queue string, err error) {
	if n.due(kindPoison, queue, noticeEvery) {
		n.log.Warn("message is no acceptable envelope", "queue", queue, "error", err)
	}
}

func (n *notices) gaveUp(queue string, d *delivery.Delivery, err error) {
	urn := short(d.URN, mostName)
	if n.due(kindGaveUp, queue+"\x00"+urn, noticeEvery) {
		n.log.Error("message given up: it is lost with its workers", "queue", queue, "urn", urn,
			"id", short(d.Meta.ID, mostName), "delivery", d.Number, "error", err)
	}
}

func (n *notices) forbidden(pointer string, d *delivery.Delivery) {
	if n.due(kindForbidden, pointer, 0) {
		n.log.Warn("message has a key that the contract forbids; it is never written (E5)", "key", pointer, "queue", d.Queue,
			"urn", short(d.URN, mostName), "id", short(d.Meta.ID, mostName), "lang", short(d.Meta.Lang, mostName))
	}
}

// hook tells of a user's function that failed where a handler had failed before. It runs for each such message.
func (n *notices) hook(text string, err error, attrs ...any) {
	if !n.due(kindHook, text, noticeEvery) {
		return
	}
	attrs = append(attrs, "error", brief(err))
	var p *PanicError
	if errors.As(err, &p) {
		attrs = append(attrs, "stack", string(p.Stack))
	}
	n.log.Error(text, attrs...)
}

// slowHook tells of refused messages that OnError does not hear of.
func (n *notices) slowHook(queue string) {
	if n.due(kindHook, "slow\x00"+queue, noticeEvery) {
		n.log.Warn("OnError is too slow: refused messages are not reported to it", "queue", queue)
	}
}

// short is the beginning of a text, cut between characters.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// brief is an error as it is logged: itself, or the beginning of a text that is too long, as a dead letter has it (D2).
func brief(err error) any {
	if text := err.Error(); len(text) > envelope.MaxErrorText {
		return short(text, envelope.MaxErrorText)
	}
	return err
}
