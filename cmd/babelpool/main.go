package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process, as it would without us
	redis.SetLogger(silence{})   // the client library writes failed dials to stderr by itself
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// silence is a logger of the client library.
type silence struct{}

// Printf prints nothing.
func (silence) Printf(context.Context, string, ...any) {}
