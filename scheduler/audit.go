package scheduler

import (
	"context"
	"log/slog"
	"time"
)

// auditEvery is the shortest time between two audits of a queue. An audit reads a whole list; what it finds
// was left by a fault, or by consumers that write no deadlines, and is in no hurry.
const auditEvery = 30 * time.Second

// auditor looks for messages that no sweep can bring back (L7).
type auditor struct {
	queue *Queue
	log   *slog.Logger
	every time.Duration
	next  time.Time
	seen  map[string]time.Time // orphaned value: when it was first seen
	last  int64                // orphans reported last
	down  bool
}

func newAuditor(q *Queue, log *slog.Logger) *auditor {
	every := max(auditEvery, q.Lease)
	return &auditor{queue: q, log: log, every: every, next: time.Now(), seen: map[string]time.Time{}}
}

// run audits when it is time to. A failed audit is logged once and made again at its next time.
func (a *auditor) run(ctx context.Context) {
	now := time.Now()
	if now.Before(a.next) {
		return
	}
	a.next = now.Add(a.every)
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := a.queue.Store.Audit(call)
	if err != nil {
		if !a.down && ctx.Err() == nil {
			a.log.Warn("audit failed", "queue", a.queue.Name, "error", err)
		}
		a.down = true
		return
	}
	a.down = false
	a.queue.Counters.Orphans.Store(max(found.Orphans, found.InFlight-found.Leases, 0))
	a.remember(found.Values, now)
	a.report(found.Orphans, found.InFlight, found.Leases, now)
	if a.queue.Adopt && a.queue.Lease > 0 {
		a.adopt(call, found.Values, now)
	}
}

// remember keeps when each orphan was first seen, and forgets those that are gone.
func (a *auditor) remember(values []string, now time.Time) {
	seen := make(map[string]time.Time, len(values))
	for _, v := range values {
		seen[v] = now
		if first, ok := a.seen[v]; ok {
			seen[v] = first
		}
	}
	a.seen = seen
}

// report logs a change of the number of orphans, with the age of the oldest as this process knows it.
func (a *auditor) report(orphans, inFlight, leases int64, now time.Time) {
	if orphans < 0 {
		orphans = max(inFlight-leases, 0) // too long to read: at least as many
	}
	if orphans == a.last {
		return
	}
	a.last = orphans
	if orphans == 0 {
		a.log.Info("no orphans in flight any more", "queue", a.queue.Name)
		return
	}
	oldest := now
	for _, first := range a.seen {
		if first.Before(oldest) {
			oldest = first
		}
	}
	a.log.Warn("messages in flight without a deadline; no sweep returns them (L7)", "queue", a.queue.Name,
		"orphans", orphans, "oldest_seen_for", now.Sub(oldest).Round(time.Second), "adopted", a.queue.Adopt)
}

// adopt gives a deadline to what has been an orphan for a whole lease; the script checks again.
func (a *auditor) adopt(ctx context.Context, values []string, now time.Time) {
	var old []string
	for _, v := range values {
		if now.Sub(a.seen[v]) >= a.queue.Lease {
			old = append(old, v)
		}
	}
	if len(old) == 0 {
		return
	}
	n, err := a.queue.Store.Adopt(ctx, old)
	if err != nil {
		a.log.Warn("orphans not adopted", "queue", a.queue.Name, "error", err)
		return
	}
	if n > 0 {
		a.queue.Counters.Adopted.Add(int64(n))
		a.log.Info("orphans adopted", "queue", a.queue.Name, "adopted", n)
	}
}
