package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// The exit codes.
const (
	exitBalanced = 0
	exitFailed   = 1 // the books do not balance, or there are no books
	exitUsage    = 2
)

func main() {
	if os.Getenv(envMember) != "" {
		redis.SetLogger(silence{})
		os.Exit(processMain(os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains. A second one ends the process, as it would without us.
	context.AfterFunc(ctx, stop)
	// The client library reports failed dials to stderr by itself. Those that matter are reported by the pool.
	redis.SetLogger(silence{})
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole command. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args, os.Getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		writeUsage(stdout)
		return exitBalanced
	case err != nil:
		complain(stderr, err)
		say(stderr, "loadtest -h lists the flags.\n")
		return exitUsage
	}
	out, err := openOutputs(cfg, stdout)
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	table := stdout
	if cfg.json == "-" {
		table = stderr
	}
	code, err := runTest(ctx, cfg, out, table, stderr)
	if err = errors.Join(err, out.close()); err != nil {
		complain(stderr, err)
		return max(code, exitFailed)
	}
	return code
}

// runTest runs one test, or a sweep, and writes its reports. The error is what went wrong beside or instead of the
// books.
func runTest(ctx context.Context, cfg config, out outputs, table, stderr io.Writer) (code int, err error) {
	show := newProgress(stderr)
	for _, note := range cfg.notes() {
		show.notef("%s", note)
	}
	srv, err := openServer(ctx, cfg, show)
	if err != nil {
		return exitFailed, err
	}
	defer func() { err = errors.Join(err, srv.close()) }()
	if cfg.sweep != nil {
		return runSweep(ctx, cfg, srv, show, out, table)
	}
	rep, runErr := runTrial(ctx, cfg, srv, show)
	if rep == nil {
		return exitFailed, runErr
	}
	rep.writeTable(table)
	runErr = errors.Join(runErr, out.write(rep, rep.page(), table))
	if runErr != nil || !rep.Reconciled {
		return exitFailed, runErr
	}
	return exitBalanced, nil
}

// runTrial runs a trial from its first key to its last. It returns a report whenever the books could be closed,
// also beside an error.
func runTrial(ctx context.Context, cfg config, srv *server, show *progress) (rep *report, err error) {
	t, err := newTrial(cfg, srv, show)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close(ctx)) }()
	return t.run(ctx)
}

// silence is a logger of the client library.
type silence struct{}

// Printf prints nothing.
func (silence) Printf(context.Context, string, ...any) {}

// complain prints an error. Joined ones stand on a line each.
func complain(w io.Writer, err error) {
	say(w, "loadtest: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n          "))
}

// say prints for a person. That it cannot be printed is nothing anybody could be told.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
