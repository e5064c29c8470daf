package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// change are the flags of commands that change something.
type change struct{ yes, dryRun bool }

func (c *change) add(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVarP(&c.dryRun, "dry-run", "n", false, "say what would be done, and do nothing")
}

// confirm asks a person whether what is said may be done. Where nobody can be asked, the answer is no.
func (a *app) confirm(c change, format string, args ...any) error {
	if c.yes {
		return nil
	}
	file, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return fmt.Errorf("%w: --yes answers where there is no terminal", errUnwilling)
	}
	return ask(a.in, a.err, fmt.Sprintf(format, args...))
}

func ask(in io.Reader, out io.Writer, question string) error {
	say(out, "%s Go on? [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && line == "" {
		say(out, "\n")
		return errUnwilling
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errUnwilling
}
