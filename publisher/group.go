package publisher

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// group joins single publishes into common commands. While a command is away, those who come meanwhile gather
// in the next one, and the first of them, its leader, sends it when the one before is back. So a lone publish
// goes out at once, and many goroutines share round trips. There are no timers and no goroutines of its own: it
// is always one of the callers who sends.
type group struct {
	send func(ctx context.Context, bodies ...string) error

	mu    sync.Mutex
	last  *command  // the newest: gathering, away, or back; nil before the first
	rooms sync.Pool // *room
}

// command is one command: gathering, away, back, or dissolved.
type command struct {
	before *command      // one that must be back first; the leader clears it when it is
	back   chan struct{} // closed when err is set

	// Under the group's mutex until sealed, afterwards the leader's.
	*room
	sealed bool // nobody joins or leaves any more

	// Set by the leader before back is closed.
	shared bool // it carried several messages
	err    error
}

// room is what a command gathers in. It serves one command after the other.
type room struct {
	text    []byte   // bodies, one behind the other
	members []joined // the first is the leader
}

// joined is a message of a command: where its body ends in text, and whether its publisher has left.
type joined struct {
	end  int
	left bool
}

const (
	mostYields = 4         // how often at most a leader lets others run before it sends
	keptRoom   = 256 << 10 // bytes of the largest room kept for another command; huge ones must not stay for ever
)

var (
	// errDissolved is the outcome of a command whose leader left before it was sent: the others join anew.
	errDissolved = errors.New("publisher: the leader left")

	// errGone is the outcome when a hook of the client panics or ends the leader's goroutine.
	errGone = fmt.Errorf("%w: the publisher's goroutine ended", ErrMayBeStored)
)

func newGroup(send func(ctx context.Context, bodies ...string) error) *group {
	g := &group{send: send}
	g.rooms.New = func() any { return new(room) }
	return g
}

// publish stores one body. The end of ctx ends the wait for the command before; once the message is in a
// command that is sent, its outcome is waited for.
func (g *group) publish(ctx context.Context, body string) error {
	c, place := g.join([]byte(body))
	return g.outcome(ctx, c, place)
}

// join copies a body into the command that gathers now, or into a new one.
func (g *group) join(body []byte) (c *command, place int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.last
	if c == nil || c.sealed || !c.fits(len(body)) {
		c = &command{before: c, back: make(chan struct{}), room: g.rooms.Get().(*room)}
		g.last = c
	}
	c.text = append(c.text, body...)
	c.members = append(c.members, joined{end: len(c.text)})
	return c, len(c.members) - 1
}

// outcome is what becomes of a body that has joined; the first in a command is the one who sends it.
func (g *group) outcome(ctx context.Context, c *command, place int) error {
	for place > 0 {
		if !wait(ctx, c.back) {
			if g.leave(c, place) {
				return ended(ctx)
			}
			<-c.back // it is away
		}
		if !errors.Is(c.err, errDissolved) {
			return c.err
		}
		if err := ended(ctx); err != nil {
			return err
		}
		c, place = g.join(c.body(place))
	}
	return g.lead(ctx, c)
}

// wait is false when ctx ended first.
func wait(ctx context.Context, back <-chan struct{}) bool {
	done := ctx.Done()
	if done == nil { // a select costs several times as much
		<-back
		return true
	}
	select {
	case <-back:
		return true
	case <-done:
		return false
	}
}

// lead sends a command in its turn. The others' messages must not fail with the leader's context, so the
// client's own timeouts bound the call where there are any.
func (g *group) lead(ctx context.Context, c *command) error {
	company := false
	// Before one that was dissolved there can be another that is away still.
	for before := c.before; before != nil; before = before.before {
		if !wait(ctx, before.back) {
			g.dissolve(c)
			return ended(ctx)
		}
		company = company || before.shared
	}
	c.before = nil
	g.seal(c, company)

	err := errGone
	defer func() {
		c.err = err
		g.keep(c.room)
		c.room = nil
		close(c.back)
	}()
	bodies := c.cut()
	if len(bodies) > 1 {
		c.shared, ctx = true, context.WithoutCancel(ctx)
	}
	err = g.send(ctx, bodies...)
	return err
}

// seal ends the gathering. Those who shared the command before have just been woken. If they publish again it
// is within microseconds, and a command costs far more than a message; so the leader lets them run first, as
// long as that brings somebody. A publisher who is alone does not even do that.
func (g *group) seal(c *command, company bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(c.members)
	for yields := 0; (company || n > 1) && yields < mostYields; yields++ {
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
		if len(c.members) == n {
			break
		}
		n = len(c.members)
	}
	c.sealed = true
}

// leave takes a body out of a command; false when it is sealed.
func (g *group) leave(c *command, place int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.sealed {
		return false
	}
	c.members[place].left = true
	return true
}

// dissolve gives up a command whose leader leaves.
func (g *group) dissolve(c *command) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.sealed, c.err = true, errDissolved
	if g.last == c {
		g.last = c.before // or those who come and go while a server is silent would make a chain
	}
	close(c.back)
}

// keep puts a room away for another command, unless large bodies made it grow.
func (g *group) keep(r *room) {
	if cap(r.text) <= keptRoom {
		r.text, r.members = r.text[:0], r.members[:0]
		g.rooms.Put(r)
	}
}

// fits reports whether a body of that size has room; the first always has.
func (r *room) fits(size int) bool {
	return len(r.members) < chunkMessages && len(r.text)+size <= chunkBytes
}

// body is the text of one message.
func (r *room) body(place int) []byte {
	return r.text[r.members[place-1].end:r.members[place].end]
}

// cut makes the bodies of those who have not left: one string, cut up.
func (r *room) cut() []string {
	bodies := make([]string, 0, len(r.members))
	all, from := string(r.text), 0
	for _, m := range r.members {
		if !m.left {
			bodies = append(bodies, all[from:m.end])
		}
		from = m.end
	}
	return bodies
}
