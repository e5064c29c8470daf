package faulttest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// tries is a client hook that notes every dial and every command, and can make name lookups fail or lead dials
// to another server.
type tries struct {
	nameless atomic.Bool            // lookups fail
	target   atomic.Pointer[string] // where dials lead; nil = where they were meant to

	mu   sync.Mutex
	made []try
}

type try struct {
	what string // "dial", or what tells the calls of one loop: the command, and the script's hash
	at   time.Time
}

func (h *tries) note(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made = append(h.made, try{what, time.Now()})
}

// between counts the tries of each kind in a span of time.
func (h *tries) between(from, to time.Time) map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := map[string]int{}
	for _, one := range h.made {
		if !one.at.Before(from) && one.at.Before(to) {
			counts[one.what]++
		}
	}
	return counts
}

func (h *tries) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		h.note("dial")
		if h.nameless.Load() {
			return nil, &net.DNSError{Err: "no such host", Name: "redis.example", IsNotFound: true}
		}
		if target := h.target.Load(); target != nil {
			addr = *target
		}
		return next(ctx, network, addr)
	}
}

func (h *tries) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		what := cmd.Name()
		if args := cmd.Args(); what == "evalsha" && len(args) > 1 {
			if hash, ok := args[1].(string); ok {
				what += " " + hash[:8]
			}
		}
		h.note(what)
		err := next(ctx, cmd)
		if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			h.note(inVain + what)
		}
		return err
	}
}

// inVain stands before the commands that failed, which are noted a second time.
const inVain = "in vain: "

// calm fails the test when a loop tried more than five times a second without success.
func (h *tries) calm(t *testing.T, from, to time.Time) {
	t.Helper()
	for what, n := range h.between(from, to) {
		if rate := float64(n) / max(1, to.Sub(from).Seconds()); strings.HasPrefix(what, inVain) && rate > 5 {
			t.Errorf("%s: %.1f times a second, %d in %v", what, rate, n, to.Sub(from).Round(time.Millisecond))
		}
	}
}

func (h *tries) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next // connections are set up by pipelines; they belong to the dial
}
