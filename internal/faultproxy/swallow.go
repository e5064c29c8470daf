package faultproxy

// Swallow is a reply that is to be lost. See [Proxy.SwallowNext].
type Swallow struct {
	match    string
	keepOpen bool
	done     chan struct{}
}

// Done is closed once the reply was dropped: the server has run the command, and the connection is
// closed (or, with KeepOpen, silent).
func (s *Swallow) Done() <-chan struct{} { return s.done }

// SwallowOption changes what SwallowNext does.
type SwallowOption func(*Swallow)

// KeepOpen leaves the connection open after the dropped reply, with nothing more coming out of it:
// the client has to find out by its own timeout.
func KeepOpen() SwallowOption { return func(s *Swallow) { s.keepOpen = true } }

// SwallowNext loses the reply to the next command that contains match, in any case, anywhere in its
// words. Next means among those that reach the proxy from now on. The command goes to the server as
// always; replies to commands before it on the same connection still reach the client; its own is
// read to the end and dropped, and then the connection is closed, and with it go the replies to
// later commands of the same pipeline.
//
// Each call takes one command. Of several that match the same one, the oldest call takes it.
//
// Note that a first EVALSHA may be answered by NOSCRIPT: load the script before, else it is that
// answer which gets lost.
func (p *Proxy) SwallowNext(match string, opts ...SwallowOption) *Swallow {
	s := &Swallow{match: match, done: make(chan struct{})}
	for _, opt := range opts {
		opt(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = append(p.armed, s)
	return s
}
