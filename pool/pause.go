package pool

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// Pause stops this process from taking messages of the named queues, of all when none is named. Messages that no
// worker has started go back to the head of their queue at once; running handlers finish. Other processes go on: to
// pause a queue for all of them, set its key (R6).
//
// Pause may be called before Run, and lasts until Resume. It returns ErrNoQueue when the pool has no such queue; then
// nothing is paused. Safe for concurrent use.
func (p *Pool) Pause(queues ...string) error { return p.setPause(true, queues) }

// Resume ends what Pause began. A queue that is paused in Redis as well stays so. Errors are as those of Pause.
func (p *Pool) Resume(queues ...string) error { return p.setPause(false, queues) }

func (p *Pool) setPause(on bool, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(p.cfg.Queues, func(q Queue) bool { return q.Name == name }) {
			return fmt.Errorf("%w: %q", ErrNoQueue, name)
		}
	}
	log, text := orElse(p.cfg.Logger, slog.Default()), "queue is resumed in this process"
	if on {
		text = "queue is paused in this process"
	}
	for i, q := range p.cfg.Queues { // a name stands for two queues where both layouts have one
		if (len(names) == 0 || slices.Contains(names, q.Name)) && p.pauses[i].SetHere(on) {
			log.Info(text, "queue", q.Name)
		}
	}
	return nil
}

// handBackPaused returns what nobody started of a paused queue. Failing is no error: the leases bring the messages back.
func (m *machine) handBackPaused(ctx context.Context, queue int) {
	held := m.buffer.RestOf(queue)
	if len(held) == 0 {
		return // workers were faster
	}
	if err := m.ackers[queue].HandBack(ctx, held); err != nil {
		m.Logger.Warn("paused: messages left to their leases", "queue", m.Queues[queue].Name, "error", err)
		return
	}
	m.Logger.Info("paused: messages nobody started are handed back", "queue", m.Queues[queue].Name, "messages", len(held))
}
