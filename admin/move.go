package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/lua"
)

// MoveOptions say what Move may do. The zero value moves what is ready and delayed, as far as nothing is lost by it.
type MoveOptions struct {
	// DeadLetters moves the dead letters too, as they are.
	DeadLetters bool
	// DropHeaders moves messages with headers to the zset layout, which has none (F4). Without it they stay.
	DropHeaders bool
	// DelayedNow puts delayed messages in the target's ready list, at once. Without it they keep their time, and stay where they
	// cannot: the legacy layout has no delayed messages (L1), and two slots of a cluster cannot share one step.
	DelayedNow bool
	// Limit is how many messages are moved at most. 0 means all.
	Limit int64
	// DryRun counts what would be moved, and moves nothing.
	DryRun bool
	// Progress, when set, is told how far it is, after each step.
	Progress func(MoveReport)
}

// Why messages stay, as MoveReport.Stayed counts them.
const (
	StayedForeign = "foreign" // no envelope, so it cannot change its layout
	StayedHeaders = "headers" // the zset layout has none; see DropHeaders
	StayedDelayed = "delayed" // its time cannot be kept; see DelayedNow
	StayedTwin    = "twin"    // the target's delayed holds the same bytes already (B05)
)

// MoveReport is what Move has done.
type MoveReport struct {
	Ready       int64            `json:"ready"`        // moved from ready
	Delayed     int64            `json:"delayed"`      // moved from delayed
	DeadLetters int64            `json:"dead_letters"` // moved dead letters
	Stayed      map[string]int64 `json:"stayed"`       // messages that stay, by reason
	Gone        int64            `json:"gone"`         // were taken by somebody else meanwhile
	InFlight    int64            `json:"in_flight"`    // in the hands of the source's consumers at the end: these are not moved
}

// Moved is how many messages were moved.
func (r *MoveReport) Moved() int64 { return r.Ready + r.Delayed + r.DeadLetters }

// Move moves the messages of a queue to another, of the same or the other layout, in their order. Both may be in use meanwhile:
// what is in flight belongs to its consumers and stays, and so does what is published after the start; move again, later, until
// nothing is left. It may be cut off at any moment and begun anew.
//
// Where both queues are in one slot, or on one server, a message is in one of the two at every instant. In two slots of a
// cluster, messages pass through the key <ready>:moving (<dead letters>:moving) of the source, a hundred at a time, and Move begins with what it finds
// there: a Move that was cut off may have published those already, so they can be handled twice.
//
// Bodies are not changed. Within a layout any value is moved; between the layouts only envelopes, and in one direction only
// without their headers.
func Move(ctx context.Context, client redis.UniversalClient, from, to Queue, o MoveOptions) (MoveReport, error) {
	m := mover{client: client, o: o, report: MoveReport{Stayed: map[string]int64{}}}
	var err error
	if m.source, err = from.keys(client); err != nil {
		return m.report, err
	}
	if m.target, err = to.keys(client); err != nil {
		return m.report, err
	}
	switch {
	case m.source.Ready == m.target.Ready:
		return m.report, fmt.Errorf("%w: %q is the queue itself", ErrOptions, m.source.Ready)
	case o.Limit < 0:
		return m.report, fmt.Errorf("%w: Limit: is at least 0", ErrOptions)
	case o.DeadLetters && m.source.DeadLetters == m.target.DeadLetters:
		return m.report, fmt.Errorf("%w: DeadLetters: both queues have %q", ErrOptions, m.source.DeadLetters)
	}
	m.from, m.to = from, to
	err = m.all(ctx)
	if errors.Is(err, errEnough) {
		err = nil
	}
	if depth, depthErr := lua.New(from.Layout, lua.Options{Client: client, Keys: m.source}).Depth(ctx); depthErr == nil {
		m.report.InFlight = depth.InFlight
	} else if err == nil {
		err = depthErr
	}
	return m.report, err
}

// errEnough ends a move at its limit.
var errEnough = errors.New("admin: enough")

// mover is one call of Move.
type mover struct {
	client         redis.UniversalClient
	from, to       Queue
	source, target lua.Keys
	o              MoveOptions
	report         MoveReport
}

func (m *mover) all(ctx context.Context) error {
	route := m.route(lua.Ready(m.client, m.source), lua.Ready(m.client, m.target), m.translate)
	if err := route.finish(ctx); err != nil { // what a cut-off move has left on its way
		return err
	}
	if err := route.walk(ctx, &m.report.Ready); err != nil {
		return err
	}
	if m.from.Layout == Zset {
		if err := m.delayed(ctx); err != nil {
			return err
		}
	}
	if !m.o.DeadLetters {
		return nil
	}
	as := func(raw string) (string, string) { return raw, "" }
	dead := m.route(lua.DeadLetters(m.client, m.source), lua.DeadLetters(m.client, m.target), as)
	if err := dead.finish(ctx); err != nil {
		return err
	}
	return dead.walk(ctx, &m.report.DeadLetters)
}

// room is how many more of n messages the limit allows.
func (m *mover) room(n int) int {
	if m.o.Limit == 0 {
		return n
	}
	return int(min(int64(n), m.o.Limit-m.report.Moved()))
}

// stepped tells how far it is, and ends the move at its limit.
func (m *mover) stepped() error {
	if m.o.Progress != nil {
		m.o.Progress(m.report)
	}
	if m.o.Limit > 0 && m.report.Moved() >= m.o.Limit {
		return errEnough
	}
	return nil
}
