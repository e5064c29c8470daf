package modeltest

import (
	"context"
	"io"
	"strings"

	"github.com/redis/go-redis/v9"
)

// wire stands between the stores and Redis as a hook of their client: it counts the scripts that were run, and breaks
// off a call at the boundary of a script.
type wire struct {
	ran int // scripts of the present call
	cut int // the script at which the call breaks off, from 1; 0 = none
	// after is true when the script still runs and its reply is lost, false when it does not arrive at all. The
	// store cannot tell.
	after bool
}

// whole lets the next call pass.
func (w *wire) whole() { *w = wire{} }

func isScript(cmd redis.Cmder) bool {
	name := cmd.Args()[0]
	if text, _ := cmd.Args()[1].(string); name == "eval" && strings.Contains(text, "local refused") {
		return false // the store asks for its permissions, which changes nothing
	}
	return name == "evalsha" || name == "eval"
}

func (w *wire) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !isScript(cmd) {
			return next(ctx, cmd)
		}
		here := w.cut == w.ran+1
		if here && !w.after {
			return io.EOF
		}
		err := next(ctx, cmd)
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			return err // nothing has happened yet
		}
		w.ran++
		if here && err == nil {
			return io.EOF
		}
		return err
	}
}

// mutant takes the place of the scripts that hold a piece: there something else stands instead. The names of scripts
// are those of their sound text, so each is refused as unknown and changed when it comes in full.
type mutant struct {
	in             string // a text that only the scripts meant hold; empty = any that holds the piece
	piece, instead string
	changed        *int
}

// unknown is the reply to the name of a script that the server does not have.
type unknown struct{}

func (unknown) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }

func (unknown) RedisError() {}

func (m mutant) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m mutant) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (m mutant) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch words := cmd.Args(); words[0] {
		case "evalsha":
			return unknown{}
		case "eval":
			text := words[1].(string)
			if strings.Contains(text, m.in) && strings.Count(text, m.piece) == 1 {
				words[1] = strings.Replace(text, m.piece, m.instead, 1)
				*m.changed++
			}
		}
		return next(ctx, cmd)
	}
}
