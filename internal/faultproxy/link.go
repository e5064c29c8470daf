package faultproxy

import (
	"bufio"
	"net"
	"sync"
	"time"
)

const (
	// readBuffer holds what a client sends as one pipeline, as a rule; see RoundTrips.
	readBuffer = 64 << 10

	// inTransit bounds the replies between the two halves of the way back.
	inTransit = 1024
)

// link is one client's connection and the proxy's own to the target. Three goroutines work on it:
// passRequests, passReplies, and deliver, which ends last and closes both ends.
type link struct {
	proxy          *Proxy
	id             int
	client, server net.Conn
	replies        chan reply    // passReplies to deliver; closed by passReplies
	done           chan struct{} // closed by close
	closeOnce      sync.Once
	stranded       chan struct{} // closed by strand
	strandOnce     sync.Once

	mu          sync.Mutex
	pending     []*Swallow // one entry per command without a reply yet, nil for an ordinary one
	undelivered int        // commands whose reply has not reached the client
}

// reply is one value on its way back.
type reply struct {
	raw     []byte
	due     time.Time // when the client may have it
	answers bool      // false for a push message and for what nobody asked
	swallow *Swallow
}

func newLink(p *Proxy, id int, client, server net.Conn) *link {
	return &link{
		proxy: p, id: id, client: client, server: server,
		replies: make(chan reply, inTransit), done: make(chan struct{}),
		stranded: make(chan struct{}),
	}
}

func (l *link) close() {
	l.closeOnce.Do(func() {
		close(l.done)
		_ = l.client.Close() // the connections only ever end this way,
		_ = l.server.Close() // so there is nobody to tell
	})
}

// strand makes the link dead and silent: neither end hears of the other again, not even that it closed.
func (l *link) strand() { l.strandOnce.Do(func() { close(l.stranded) }) }

// pass waits while everything is held back. It returns false when the link is closed, for a stranded one not before.
func (l *link) pass() bool { return l.proxy.pass(l.done) && !l.lost() }

// lost tells whether the link is stranded, and then waits for its end.
func (l *link) lost() bool {
	select {
	case <-l.stranded:
		<-l.done
		return true
	default:
		return false
	}
}

// passRequests reads commands and hands them on, all that the client sent at once together, so that
// a pipeline stays one burst for the server and in the count.
func (l *link) passRequests() {
	r := bufio.NewReaderSize(l.client, readBuffer)
	for {
		var burst []byte
		for first := true; first || r.Buffered() > 0; first = false {
			args, raw, err := readCommand(r)
			if err != nil {
				// The client has closed, or speaks something else. What it sent before still
				// counts: closing outright could take it from the server's hands unread, so the
				// server gets to see an end of input and closes in its turn.
				if l.lost() {
					return
				}
				l.forward(burst)
				if half, ok := l.server.(*net.TCPConn); !ok || half.CloseWrite() != nil {
					l.close()
				}
				return
			}
			burst = append(burst, raw...)
			if len(args) > 0 {
				l.expect(Command{Conn: l.id, Args: args}, first)
			}
		}
		if !l.forward(burst) {
			return
		}
	}
}

// forward sends a burst to the server.
func (l *link) forward(burst []byte) bool {
	if len(burst) == 0 {
		return true
	}
	if !l.pass() {
		return false
	}
	if _, err := l.server.Write(burst); err != nil {
		l.close()
		return false
	}
	return true
}

// expect notes that a reply to this command will come. It runs before the command is sent.
func (l *link) expect(c Command, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	swallow := l.proxy.record(c, first && l.undelivered == 0)
	l.pending = append(l.pending, swallow)
	l.undelivered++
}

// passReplies reads the server's values and pairs them with the commands by order. They then travel
// through a channel, so that the delay of one does not hold up the reading of the next.
func (l *link) passReplies() {
	defer close(l.replies)
	r := bufio.NewReaderSize(l.server, readBuffer)
	for {
		raw, err := readValue(r, nil)
		if err != nil {
			return // deliver sends on what is in transit and then closes
		}
		v := reply{raw: raw, due: time.Now().Add(l.proxy.currentDelay())}
		if !isPush(raw) {
			l.mu.Lock()
			if len(l.pending) > 0 { // else the server speaks unasked, as when it turns a client away
				v.answers = true
				v.swallow, l.pending = l.pending[0], l.pending[1:]
			}
			l.mu.Unlock()
		}
		select {
		case l.replies <- v:
		case <-l.done:
			return
		}
	}
}

// deliver sends values on to the client when they are due, drops what is to be lost, and closes the
// connection at the end.
func (l *link) deliver() {
	defer l.close()
	silent := false
	for v := range l.replies {
		if silent {
			continue
		}
		if v.swallow != nil {
			if !v.swallow.keepOpen {
				l.close()
				close(v.swallow.done)
				return
			}
			silent = true
			close(v.swallow.done)
			continue
		}
		if !l.waitUntil(v.due) || !l.pass() {
			return
		}
		if v.answers {
			// Before the write: the client may send its next command as soon as it has this one's
			// reply, and that one is a round trip of its own.
			l.mu.Lock()
			l.undelivered--
			l.mu.Unlock()
		}
		if _, err := l.client.Write(v.raw); err != nil {
			return
		}
	}
	l.lost()
}

func (l *link) waitUntil(due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.done:
		return false
	}
}
