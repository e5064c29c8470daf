package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// crew is a fleet whose processes are killed and started again. It is a consumer.
type crew struct {
	posts    []*post
	took     *latencies // where the processes' latencies are put together
	going    atomic.Bool
	stopping atomic.Bool
}

// post is a place of the crew, which one process after another takes.
type post struct {
	order  order
	shared *sharedMemory
	stderr io.Writer

	mu     sync.Mutex
	member *member            // the present one
	kill   context.CancelFunc // ends it; nil before it is ready and once it is killed
	killed bool               // the present one was
	past   processStats       // of those before
	counts counts             // likewise
}

// newCrew prepares the posts; nothing is started yet.
func newCrew(o order, shared *sharedMemory, took *latencies, stderr io.Writer) *crew {
	c := &crew{took: took}
	for i := range o.Of {
		o.Number = i + 1
		orders := *o.Chaos
		orders.Renews, orders.Behind = i%chaosProcesses != 1, 0
		if i%chaosProcesses == 2 {
			orders.Behind = clockBehind
		}
		o.Chaos = &orders
		c.posts = append(c.posts, &post{order: o, shared: shared, stderr: stderr})
	}
	return c
}

// run fills the posts, again and again, until ctx ends and all have drained.
func (c *crew) run(ctx context.Context, begin func()) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	var ready sync.WaitGroup
	ready.Add(len(c.posts))
	errs := make([]error, len(c.posts))
	var g errgroup.Group
	for i, p := range c.posts {
		g.Go(func() error {
			isReady := sync.OnceFunc(ready.Done)
			defer isReady() // nobody waits for one that will never be
			if errs[i] = c.fill(life, p, isReady); errs[i] != nil {
				end()
			}
			return nil
		})
	}
	ready.Wait()
	if ctx.Err() == nil {
		begin()
		c.going.Store(true)
		c.tell(command{Go: true})
	}
	<-ctx.Done()
	c.stopping.Store(true)
	c.tell(command{Stop: true})
	impatient := time.AfterFunc(fleetPatience, kill)
	defer impatient.Stop()
	_ = g.Wait() // the errors are kept apart, because all of them are told
	return errors.Join(errs...)
}

// fill runs one process after another, each until it is killed. It ends with one that ended by itself.
func (c *crew) fill(life context.Context, p *post, ready func()) error {
	for {
		ctx, kill := context.WithCancel(life)
		m := newMember(p.order, p.shared.file, p.stderr)
		p.take(m)
		err := m.run(ctx, func() {
			ready()
			p.mayBeKilled(kill)
			// The flags are set before everybody is told, so a process that comes too late to be told sees them here.
			// To be told twice does no harm.
			if c.going.Load() {
				m.tell(command{Go: true})
			}
			if c.stopping.Load() {
				m.tell(command{Stop: true})
			}
		})
		kill()
		killed := p.leave()
		if added := m.addTo(c.took); added != nil {
			return errors.Join(err, added)
		}
		if !killed || life.Err() != nil {
			return err
		}
	}
}

// take notes a new process.
func (p *post) take(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.member, p.kill = m, nil
}

func (p *post) mayBeKilled(kill context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill = kill
}

// leave adds up what the process did and reports whether it was killed.
func (p *post) leave() (killed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past, p.counts = p.sums()
	killed = p.killed
	p.member, p.kill, p.killed = nil, nil, false
	return killed
}

// sums are what all processes of the post have told. What one did in its last milliseconds before it was killed is not
// in them; the books know it. Called with the lock.
func (p *post) sums() (processStats, counts) {
	stats, sum := p.past, p.counts
	if p.member != nil {
		n := p.member.latest()
		stats.acked += n.Counts.Acked
		stats.cpu += n.CPU
		stats.cpuKnown = stats.cpuKnown || n.CPUKnown
		sum = sum.plus(n.Counts)
	}
	return stats, sum
}

// kill kills the process of a post, as far as there is one at work.
func (c *crew) kill(draw uint64) bool {
	p := c.posts[draw%uint64(len(c.posts))]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kill == nil || c.stopping.Load() {
		return false
	}
	p.killed = true
	p.kill()
	p.kill = nil
	return true
}

func (c *crew) tell(cmd command) {
	for _, p := range c.posts {
		p.mu.Lock()
		m := p.member
		p.mu.Unlock()
		if m != nil {
			m.tell(cmd)
		}
	}
}

func (c *crew) counts() counts {
	var all counts
	for _, p := range c.posts {
		p.mu.Lock()
		_, sum := p.sums()
		p.mu.Unlock()
		all = all.plus(sum)
	}
	return all
}

func (c *crew) processes() []processStats {
	var all []processStats
	for _, p := range c.posts {
		p.mu.Lock()
		stats, _ := p.sums()
		p.mu.Unlock()
		all = append(all, stats)
	}
	return all
}
