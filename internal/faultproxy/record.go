package faultproxy

import (
	"slices"
	"strings"
)

// Command is one command a client sent.
type Command struct {
	// Conn numbers the connection it came on, from 1 in order of acceptance.
	Conn int
	// Args are the command's words, its name first, as sent.
	Args []string
}

// Name returns the command's name in upper case.
func (c Command) Name() string { return strings.ToUpper(c.Args[0]) }

// String returns the words with spaces between. This is the text that SwallowNext and Count search.
func (c Command) String() string { return strings.Join(c.Args, " ") }

// contains compares without regard to case, because clients differ in how they spell names.
func (c Command) contains(match string) bool {
	return strings.Contains(strings.ToLower(c.String()), strings.ToLower(match))
}

// Commands returns the commands passed on since the start or the last ResetCounts, in the order in
// which they came. Those that a client sends to set a connection up, such as HELLO, are among them.
func (p *Proxy) Commands() []Command {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.commands)
}

// Count returns how many of those commands contain match, in any case, anywhere in their words.
func (p *Proxy) Count(match string) int {
	n := 0
	for _, c := range p.Commands() {
		if c.contains(match) {
			n++
		}
	}
	return n
}

// RoundTrips returns how many bursts of requests were sent since the start or the last ResetCounts.
// A burst begins with a command that comes when its connection waits for no reply; a pipeline is
// one. (A pipeline much larger than 64 KiB may count as several, when its first replies are out
// before its last commands are in.)
func (p *Proxy) RoundTrips() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roundTrips
}

// ResetCounts forgets the commands and round trips so far.
func (p *Proxy) ResetCounts() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands, p.roundTrips = nil, 0
}
