package redisproc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// topologyPause lies between two looks at servers that agree with each other by gossip, which takes tenths of
// seconds.
const topologyPause = 20 * time.Millisecond

// do sends one command over a connection of its own.
func (s *Server) do(ctx context.Context, args ...any) *redis.Cmd {
	probe := s.newProbe()
	defer probe.close()
	return probe.client.Do(ctx, args...)
}

// alive are the servers with a process. Others are not dialled: that would only leave goroutines of the client
// library behind for a second.
func alive(servers []*Server) []*Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s *Server) bool { return s.PID() == 0 })
}

// stopAll ends servers for good.
func stopAll(servers []*Server) error {
	problems := make([]error, 0, len(servers))
	for _, s := range servers {
		problems = append(problems, s.Stop())
	}
	return errors.Join(problems...)
}

// until looks again and again until ready says nil. At the context's end its last answer is the error.
func until(ctx context.Context, what string, ready func() error) error {
	ticker := time.NewTicker(topologyPause)
	defer ticker.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redisproc: waiting for %s: %w: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// node is one line of CLUSTER NODES.
type node struct {
	id, addr string
	flags    []string
	master   string // the id of the master of a replica
	slots    [][2]int
}

func (n node) is(flag string) bool { return slices.Contains(n.flags, flag) }

func (n node) serves(slot int) bool {
	return n.is("master") && slices.ContainsFunc(n.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// nodes is the cluster as one server sees it.
func (s *Server) nodes(ctx context.Context) ([]node, error) {
	text, err := s.do(ctx, "cluster", "nodes").Text()
	if err != nil {
		return nil, fmt.Errorf("redisproc: CLUSTER NODES of %s: %w", s.addr, err)
	}
	var all []node
	for line := range strings.Lines(text) {
		// id, ip:port@bus[,host], flags, master, ping, pong, epoch, link, slots …
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		addr, _, _ := strings.Cut(fields[1], "@")
		n := node{id: fields[0], addr: addr, flags: strings.Split(fields[2], ","), master: fields[3]}
		for _, word := range fields[8:] {
			if strings.HasPrefix(word, "[") {
				continue // a slot on its way
			}
			first, last, isRange := strings.Cut(word, "-")
			if !isRange {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err := errors.Join(err1, err2); err != nil {
				return nil, fmt.Errorf("redisproc: CLUSTER NODES of %s: %w", s.addr, err)
			}
			n.slots = append(n.slots, [2]int{from, to})
		}
		all = append(all, n)
	}
	return all, nil
}

// myself is what a server says of itself.
func (s *Server) myself(ctx context.Context) (node, error) {
	all, err := s.nodes(ctx)
	if err != nil {
		return node{}, err
	}
	for _, n := range all {
		if n.is("myself") {
			return n, nil
		}
	}
	return node{}, fmt.Errorf("redisproc: %s is no node of a cluster", s.addr)
}
