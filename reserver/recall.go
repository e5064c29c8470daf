package reserver

import (
	"context"
	"errors"
	"time"

	"github.com/babelpool/babelpool/internal/flow"
)

// lastRecall bounds the one try at the end of Run: a stop must not wait long for a Redis that is away.
const lastRecall = time.Second

// doubt is a reserve call whose reply was lost. Nobody else knows the messages it may have taken, and nobody runs
// them before its lease has run out. Its slots stay taken until Redis has told, so there is room for them; of more than
// the queue's share, the share. Should more be found, they are held beyond the pool's capacity until they are settled.
type doubt struct {
	call  string
	sent  time.Time
	n     int
	bytes int64
	tried bool // a look-up has failed
}

// lend gives back what the call in doubt had taken beyond the queue's share: others would miss it for as long as the
// server is away.
func (a *Reserver) lend() {
	if extra := a.doubt.n - a.cfg.Share; a.cfg.Share > 0 && extra > 0 {
		a.doubt.n = a.cfg.Share
		a.cfg.Slots.Release(a.cfg.Queue, extra, 0)
	}
}

// recall looks for the messages of the call in doubt and hands them on like those of any other call, with a lease
// that runs from when the lost one was sent. Looking changes nothing, so it is repeated while Redis is away.
func (a *Reserver) recall(ctx context.Context, within time.Duration) error {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	lost := a.doubt
	got, err := a.cfg.Store.Recall(call, lost.call, lost.sent)
	if errors.Is(err, flow.ErrTransient) {
		lost.tried = true
		return err
	}
	a.doubt = nil
	if err != nil {
		// Somebody has to mend this. Until then the slots would be missing elsewhere.
		a.cfg.Slots.Release(a.cfg.Queue, lost.n, lost.bytes)
		a.cfg.Logger.Warn("the messages of a reserve whose reply was lost are left to their lease", "queue", a.cfg.Name, "error", err)
		return err
	}
	a.recovered()
	a.accept(got, lost.n, lost.bytes)
	if got.Lease != nil {
		a.cfg.Logger.Info("found the messages of a reserve whose reply was lost", "queue", a.cfg.Name, "messages", len(got.Lease.Items))
	}
	return nil
}

// endDoubt gives a call in doubt its last chance when Run ends: what it finds is handed back with the rest of the
// buffer. Where that fails the lease brings the messages back.
func (a *Reserver) endDoubt(ctx context.Context) {
	if a.doubt == nil {
		return
	}
	if !a.doubt.tried {
		_ = a.recall(ctx, lastRecall) // what is still in doubt is dealt with below
	}
	if a.doubt == nil {
		return
	}
	a.cfg.Slots.Release(a.cfg.Queue, a.doubt.n, a.doubt.bytes)
	a.cfg.Logger.Warn("the messages of a reserve whose reply was lost are left to their lease", "queue", a.cfg.Name)
	a.doubt = nil
}
