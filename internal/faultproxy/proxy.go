package faultproxy

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
)

// dialTimeout bounds the proxy's own connection to the target.
const dialTimeout = 2 * time.Second

// Proxy is a TCP proxy in front of one Redis server. Its methods may be called by any goroutine.
type Proxy struct {
	target   string
	listener net.Listener
	ctx      context.Context //nolint:containedctx // ends with the proxy, to cut short a dial
	end      context.CancelFunc
	wg       conc.WaitGroup // the accept loop and every link's goroutines
	keeps    bool           // the commands it sees; set by Start and Listen

	mu         sync.Mutex
	closed     bool
	refuse     bool
	delay      time.Duration
	hole       chan struct{} // not nil while nothing passes; closed when it passes again
	links      map[*link]struct{}
	lastConn   int
	armed      []*Swallow // in the order of their calls
	commands   []Command
	roundTrips int
}

// test is what Start needs of a testing.TB. Package testing belongs in no program, and the load test is one.
type test interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Start runs a proxy in front of target, a host and port, until the test ends. The target need not
// be up yet: each connection is dialled when a client comes, and closed when that fails. The proxy
// takes everything down with it when the test ends, so close clients before, or let a t.Cleanup
// registered later do it.
func Start(t test, target string) *Proxy {
	t.Helper()
	p, err := listen(target, true)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// Listen is Start for a run that is no test: the proxy lasts until Close, and keeps no commands, so that a long
// run needs no memory for them. Commands, Count and RoundTrips stay empty.
func Listen(target string) (*Proxy, error) { return listen(target, false) }

func listen(target string, keeps bool) (*Proxy, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // returns at once
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{target: target, listener: listener, keeps: keeps, links: make(map[*link]struct{})}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

// Close ends the proxy and all its connections, and waits until nothing of it is left.
func (p *Proxy) Close() {
	p.end()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close() // what ends the accept loop
	p.Cut()
	p.wg.Wait()
}

// Addr returns the host and port that clients connect to instead of the target.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Blackhole holds everything back, in both directions and on new connections too, while
// connections stay open. Nothing is lost: as TCP does after an interruption, the proxy delivers
// what it holds once Blackhole is off, even when the client has given up on it meanwhile. Cut first
// to have it dropped.
func (p *Proxy) Blackhole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.hole == nil:
		p.hole = make(chan struct{})
	case !on && p.hole != nil:
		close(p.hole)
		p.hole = nil
	}
}

// Delay makes each reply reach the client this much later, 0 for none. Replies are delayed side by
// side, as by a long line: those of a pipeline together need the delay once.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Strand makes all current connections dead, as when a host loses its network without a word or a router forgets
// them: both ends stay open and hear nothing more until Cut or the end of the test. New ones work.
func (p *Proxy) Strand() {
	for _, l := range p.current() {
		l.strand()
	}
}

// Cut closes all current connections, on both sides. New ones are accepted.
func (p *Proxy) Cut() {
	for _, l := range p.current() {
		l.close()
	}
}

func (p *Proxy) current() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// Refuse resets new connections as soon as they are made. Current ones stay; see Cut.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// accept ends when the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse := p.refuse
		p.lastConn++
		id := p.lastConn
		p.mu.Unlock()
		if refuse {
			// The listener stays open, or another process might take the port; a reset is as close
			// to a refusal as that allows.
			_ = client.(*net.TCPConn).SetLinger(0)
			_ = client.Close()
			continue
		}
		p.wg.Go(func() { p.serve(id, client) })
	}
}

// serve lives as long as the connection.
func (p *Proxy) serve(id int, client net.Conn) {
	dialer := net.Dialer{Timeout: dialTimeout}
	server, err := dialer.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	l := newLink(p, id, client, server)
	p.mu.Lock()
	p.links[l] = struct{}{}
	closed := p.closed
	p.mu.Unlock()
	if closed { // after the last Cut
		l.close()
	}
	p.wg.Go(l.passRequests)
	p.wg.Go(l.passReplies)
	l.deliver()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// record notes a command and returns the swallow that takes it, if any.
func (p *Proxy) record(c Command, newTrip bool) *Swallow {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keeps {
		p.commands = append(p.commands, c)
		if newTrip {
			p.roundTrips++
		}
	}
	for i, s := range p.armed {
		if c.contains(s.match) {
			p.armed = slices.Delete(p.armed, i, i+1)
			return s
		}
	}
	return nil
}

// pass waits while everything is held back. It returns false when done ends the wait.
func (p *Proxy) pass(done <-chan struct{}) bool {
	for {
		p.mu.Lock()
		hole := p.hole
		p.mu.Unlock()
		if hole == nil {
			return true
		}
		select {
		case <-hole:
		case <-done:
			return false
		}
	}
}

func (p *Proxy) currentDelay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}
