package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/flow"
)

// errFlushTimeout is the cause of a flush that was given up.
var errFlushTimeout = errors.New("pool: the last settlements took longer than HardStopTimeout")

// stopping is what the phases of a stop act on.
type stopping struct {
	intake, work, settle *errgroup.Group
	hardStop, giveUp     context.CancelCauseFunc
	calls                *limited // the parent of what ackers and scheduler send to Redis
	unsettled            []error  // of the ackers; valid after settle
}

// limited is a context whose deadline becomes known at stop. The client library does not interrupt a call when
// a context is cancelled, but it heeds a deadline: without one, the last calls to a frozen server would last
// until the client's own timeouts, and the stop beyond its budget (B24).
type limited struct {
	context.Context //nolint:containedctx // it is a context itself
	until           atomic.Pointer[time.Time]
}

// Deadline is none until limit was called.
func (l *limited) Deadline() (time.Time, bool) {
	if at := l.until.Load(); at != nil {
		return *at, true
	}
	return l.Context.Deadline()
}

// limit sets the deadline of the calls made from now on.
func (l *limited) limit(at time.Time) { l.until.Store(&at) }

// stop goes through the phases. Each ends before the next begins, and each is logged once:
//
//  1. intake ends; no handler starts any more
//  2. what nobody started is handed back
//  3. running handlers get DrainTimeout, then a cancelled context, then HardStopTimeout
//  4. the last settlements are carried out
//
// The drain time runs from the beginning, so that a Redis that does not answer to 1 and 2 takes nothing extra.
func (m *machine) stop(s stopping) error {
	drainUntil := time.Now().Add(m.DrainTimeout)
	s.calls.limit(drainUntil.Add(m.HardStopTimeout)) // a call made for the first cancelled handler counts already
	m.Logger.Info("stopping: intake ends")
	m.router.Drain()
	_ = s.intake.Wait()     // never fails
	rest := m.buffer.Rest() // the reservers have returned: nothing more comes
	m.buffer.Close()
	problems := m.handBack(rest)

	problems = append(problems, m.drain(s, drainUntil))
	for _, ch := range m.settlements {
		close(ch) // its last senders, the workers, have returned or been abandoned
	}
	s.calls.limit(time.Now().Add(m.HardStopTimeout))
	stopTimer := within(m.HardStopTimeout, s.giveUp, errFlushTimeout)
	defer stopTimer()
	_ = s.settle.Wait() // the errors are in unsettled
	err := errors.Join(append(problems, s.unsettled...)...)
	m.Logger.Info("stopped", "clean", err == nil)
	return err
}

// handBack returns what nobody started to the head of its queue. Failing is no error of the run: the leases
// bring the messages back.
func (m *machine) handBack(rest []*flow.Reservation) []error {
	byQueue := make([][]*flow.Reservation, len(m.Queues))
	for _, r := range append(rest, m.router.Leftovers()...) {
		byQueue[r.Queue] = append(byQueue[r.Queue], r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.HardStopTimeout)
	defer cancel()
	count := 0
	for i, held := range byQueue {
		count += len(held)
		if err := m.ackers[i].HandBack(ctx, held); err != nil {
			m.Logger.Warn("stopping: messages left to their leases", "queue", m.Queues[i].Name, "error", err)
		}
	}
	m.Logger.Info("stopping: messages nobody started are handed back", "messages", count)
	return nil
}

// drain waits for the running handlers.
func (m *machine) drain(s stopping, until time.Time) error {
	running := m.router.Running()
	m.Logger.Info("stopping: running handlers finish", "handlers", len(running), "timeout", m.DrainTimeout)
	ended := make(chan struct{})
	var wait errgroup.Group
	wait.Go(func() error { defer close(ended); return s.work.Wait() })

	if passed(ended, time.Until(until)) {
		return wait.Wait()
	}
	m.Logger.Warn("stopping: drain time is over, handlers are cancelled", "handlers", len(m.router.Running()))
	s.hardStop(flow.ErrHardStop)
	if passed(ended, m.HardStopTimeout) {
		return wait.Wait()
	}
	abandoned := m.router.Abandon()
	err := wait.Wait()
	if len(abandoned) > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d, left to their leases: %s", ErrAbandoned, len(abandoned), strings.Join(abandoned, "; ")))
	}
	return err
}

// passed waits for a channel's end, for d at most.
func passed(ended <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
	}
	select { // both may be ready
	case <-ended:
		return true
	default:
		return false
	}
}
