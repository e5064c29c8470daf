package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitFine      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitUnwilling = 3
)

// errUnwilling is returned when a person said no, or nobody could be asked.
var errUnwilling = errors.New("not confirmed; nothing was changed")

// errFound is returned when doctor found a problem, which it has shown already.
var errFound = errors.New("problems found")

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

// app is one run of the command: its streams and the flags that every command has.
type app struct {
	in       io.Reader
	out, err io.Writer
	look     look
	flags    globalFlags
}

// run is the whole command. It returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{in: in, out: out, err: errOut, look: newLook(lipgloss.NewRenderer(out))}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFound):
		return exitFailed
	case errors.As(err, &usage):
		complain(errOut, err)
		say(errOut, "babelpool %s --help says more.\n", commandOf(root, args))
		return exitUsage
	case errors.Is(err, errUnwilling):
		complain(errOut, err)
		return exitUnwilling
	}
	complain(errOut, err)
	return exitFailed
}

// commandOf is the words of the command that args name.
func commandOf(root *cobra.Command, args []string) string {
	c, _, err := root.Find(args)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), root.Name()))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "babelpool",
		Short: "Look at BabelQueue queues in Redis, and repair them",
		Long: "Look at BabelQueue queues in Redis, and repair them.\n\n" +
			"Queues are named as publishers name them: not by their keys. A command works on one layout at a time.",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.flags.check() },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q", args[0])}
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs, // RunE complains, with the name quoted
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	a.flags.add(root)
	root.AddCommand(a.statsCommand(), a.pauseCommand(), a.resumeCommand(), a.doctorCommand(), a.dlqCommand(),
		a.peekCommand(), a.publishCommand(), a.inflightCommand(), a.sweepCommand(), a.adoptCommand(), a.moveCommand())
	return root
}

// someQueues wants at least one queue's name.
func someQueues(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError{errors.New("name at least one queue")}
	}
	return nil
}

// oneQueue wants exactly one.
func oneQueue(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("name one queue, not %d", len(args))}
	}
	return nil
}

// complain prints an error. Joined ones stand on a line each.
func complain(w io.Writer, err error) {
	say(w, "babelpool: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n           "))
}

// say prints for a person. That it cannot be printed is nothing anybody could be told.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
