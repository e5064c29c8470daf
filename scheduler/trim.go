package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

const (
	// trimPerTick is how often within a tick a trimmer looks whether this process has added dead letters. Looking
	// costs Redis nothing.
	trimPerTick = 10
	// trimNoticeEvery is the shortest time between two lines about discarded dead letters.
	trimNoticeEvery = time.Minute
	// lastTrim bounds the trim at the end of Run.
	lastTrim = time.Second
)

// trimmer keeps the dead letters of one queue within their limits (B42): soon after this process has added some, at its
// start, and once in a while because of their age and of what other processes add.
type trimmer struct {
	queue  *Queue
	tick   time.Duration
	log    *slog.Logger
	health health
	pulse  *flow.Pulse

	added     int64     // dead letters counted when it was trimmed last
	next      time.Time // when it is trimmed in any case
	discarded int       // not yet logged
	notice    time.Time // when they may be logged
}

func (t *trimmer) run(ctx context.Context) {
	ticker := time.NewTicker(max(t.tick/trimPerTick, time.Millisecond))
	defer ticker.Stop()
	defer t.pulse.Rest()
	for {
		t.pulse.Beat()
		t.look(ctx)
		select {
		case <-ctx.Done():
			t.last(ctx)
			return
		case <-ticker.C:
		}
	}
}

// look trims when there is a reason to. After a failure it tries again at the next time, or with the next dead letter.
func (t *trimmer) look(ctx context.Context) {
	now := time.Now()
	added := t.queue.Counters.DeadLettered.Load()
	if added != t.added || !now.Before(t.next) {
		t.added, t.next = added, now.Add(auditEvery)
		for more := true; more && ctx.Err() == nil; {
			more = t.trim(ctx)
		}
	}
	t.report(now)
}

// trim makes one call and reports whether another is needed.
func (t *trimmer) trim(ctx context.Context) (more bool) {
	t.pulse.Beat() // a long backlog takes many calls
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	discarded, more, err := t.queue.Store.Trim(call, t.queue.Limits)
	if err != nil {
		if ctx.Err() == nil {
			t.health.failed(err)
		}
		return false
	}
	t.health.worked()
	t.queue.Counters.Discarded.Add(int64(discarded))
	t.discarded += discarded
	return more
}

// report logs what was discarded, once a minute at most.
func (t *trimmer) report(now time.Time) {
	if t.discarded == 0 || now.Before(t.notice) {
		return
	}
	t.log.Warn("the oldest dead letters were discarded: they are beyond DeadLetterLimits", "queue", t.queue.Name,
		"discarded", t.discarded)
	t.discarded, t.notice = 0, now.Add(trimNoticeEvery)
}

// last trims what the last settlements have added, after the pool has stopped; it does not hold up the stop for long.
func (t *trimmer) last(ctx context.Context) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTrim)
	defer cancel()
	for more := t.queue.Counters.DeadLettered.Load() != t.added; more && call.Err() == nil; {
		more = t.trim(call)
	}
	t.report(t.notice) // the rest, whenever the last line was
}
