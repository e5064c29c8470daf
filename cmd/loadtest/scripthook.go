package main

import (
	"context"
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	"encoding/hex"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/chaos"
)

// scriptChange changes the calls of scripts.
type scriptChange interface {
	// learn is told a script's text, once.
	learn(hash, text string)
	// change changes the words of a call before it is sent: EVALSHA with this hash, or EVAL with its text.
	change(hash string, words []any)
}

// scriptHook shows a scriptChange every call of a script. It learns the texts by refusing a hash that it does not know
// in the server's name, whereupon the store sends the text.
type scriptHook struct {
	changes scriptChange

	mu    sync.Mutex
	known map[string]bool
}

func newScriptHook(c scriptChange) *scriptHook {
	return &scriptHook{changes: c, known: map[string]bool{}}
}

// noScriptError is what a server says of a hash that it does not know.
type noScriptError struct{}

// Error is as the server words it.
func (noScriptError) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }

// RedisError makes it a server's error.
func (noScriptError) RedisError() {}

// DialHook changes nothing.
func (h *scriptHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook changes nothing: scripts are not sent in pipelines.
func (h *scriptHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook is where the calls pass.
func (h *scriptHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		words := cmd.Args()
		switch words[0] {
		case "evalsha":
			hash, _ := words[1].(string)
			if !h.knows(hash) {
				cmd.SetErr(noScriptError{})
				return noScriptError{}
			}
			h.changes.change(hash, words)
		case "eval":
			text, _ := words[1].(string)
			h.changes.change(h.hash(text), words)
		}
		return next(ctx, cmd)
	}
}

func (h *scriptHook) knows(hash string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known[hash]
}

// hash is that of a text, which is known from now on.
func (h *scriptHook) hash(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
	hash := hex.EncodeToString(sum[:])
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.known[hash] {
		h.changes.learn(hash, text)
		h.known[hash] = true
	}
	return hash
}

// wrongClock gives scripts the time of a clock that is behind. They take one for tests, which otherwise they never get
// (R2): so it is as if the consumer were a peer that goes by its own clock.
type wrongClock struct {
	behind time.Duration
	faults *chaos.Counters
	places *sync.Map // hash: where the clock stands among the arguments, from 1
}

var clockArgument = regexp.MustCompile(`clock\(ARGV\[(\d+)\]\)`)

func (c wrongClock) learn(hash, text string) {
	if match := clockArgument.FindStringSubmatch(text); match != nil {
		place, _ := strconv.Atoi(match[1]) // digits
		c.places.Store(hash, place)
	}
}

func (c wrongClock) change(hash string, words []any) {
	place, takes := c.places.Load(hash)
	keys, ok := words[2].(int)
	if !takes || !ok {
		return
	}
	words[2+keys+place.(int)] = strconv.FormatInt(time.Now().Add(-c.behind).Unix(), 10)
	c.faults.Add(chaos.ClockSkew)
}
