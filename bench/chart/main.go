package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("chart", flag.ContinueOnError)
	flags.SetOutput(stderr)
	in := flags.String("in", "", "results `file` of bench/peers")
	out := flags.String("out", "", "SVG `file` to write; standard output when empty")
	leaveOut := flags.String("leave-out", "floor,ceiling-legacy,ceiling-zset",
		"comma-separated contenders to leave out; by default the yardsticks, which are nothing a user could run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*in)
	if err != nil {
		return err
	}
	r, err := parse(text)
	if err != nil {
		return fmt.Errorf("%s: %w", *in, err)
	}
	bars, err := r.bars(strings.Split(*leaveOut, ","))
	if err != nil {
		return fmt.Errorf("%s: %w", *in, err)
	}
	svg, err := draw(bars, r.conditions())
	if err != nil {
		return err
	}
	if *out == "" {
		_, err = io.WriteString(stdout, svg)
		return err
	}
	return os.WriteFile(*out, []byte(svg), 0o644) //nolint:gosec // a picture for everybody, where the user wants it
}
