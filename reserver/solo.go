package reserver

import (
	"context"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// takeSolo takes the right to hold a message in its last chance (B21), once the last call has told that workers were
// lost at all: queues that have no such message must not be in the way of those that do. nil = none may be taken.
func (a *Reserver) takeSolo() *flow.Solo {
	if a.cfg.Solo == nil || !a.lost || !a.cfg.Solo.Take() {
		return nil
	}
	return a.cfg.Solo
}

// awaitSolo follows a call that brought nothing but messages in their last chance, which went to the tail of ready. What
// else may be behind them is looked for first, until all of ready has come round; then there is nothing to do before
// the one that is held is settled, or something is published.
func (a *Reserver) awaitSolo(ctx context.Context, got flow.Reserved) {
	a.around += got.Back
	if a.around < got.Left {
		return
	}
	a.around = 0
	a.pulse.Rest()
	timer := time.NewTimer(jittered(a.cfg.PollInterval))
	defer timer.Stop()
	select {
	case <-a.cfg.Solo.Freed():
	case <-timer.C:
	case <-ctx.Done():
	}
}
