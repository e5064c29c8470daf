package redisproc

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Config says how a server is started. The zero value is a server without persistence or memory
// limit on a free port, in a directory of its own.
type Config struct {
	// Dir is where the server keeps its log and, with AppendOnly, its data. It is made when
	// missing. Defaults to a temporary directory that Stop removes; a given one stays.
	Dir string

	// Port is the loopback TCP port. Defaults to a free one, chosen again when it was lost to
	// another process between choice and use.
	Port int

	// AppendOnly turns the append-only file on, so that Restart finds the data again. Defaults to
	// off.
	AppendOnly bool

	// AppendFsync is always, everysec or no. Defaults to the server's own default, everysec.
	AppendFsync string

	// MaxMemory is the limit in the server's notation, such as "64mb". Defaults to none.
	MaxMemory string

	// MaxMemoryPolicy is what happens at the limit. Defaults to the server's own default,
	// noeviction.
	MaxMemoryPolicy string

	// Args are further command-line words, such as "--requirepass", "secret". They come last and
	// so override everything above. Defaults to none.
	Args []string

	// sentinel makes the server a sentinel, which wants a configuration file that it can rewrite: this text.
	sentinel string
}

// sentinelFile is in the server's directory, where it runs.
const sentinelFile = "sentinel.conf"

// arguments builds the command line. Every option that a system-wide default could set otherwise is
// written out, because nothing here may depend on the machine.
func (c Config) arguments(port int, version string) []string {
	var args []string
	if c.sentinel != "" {
		args = []string{sentinelFile, "--sentinel"}
	}
	args = append(args,
		"--port", strconv.Itoa(port),
		"--bind", "127.0.0.1",
		"--daemonize", "no",
		"--save", "",
		"--appendonly", yesNo(c.AppendOnly),
	)
	if major, _, _ := strings.Cut(version, "."); atLeast(major, 7) {
		// DEBUG is refused by default from 7.0 on, and older servers end at an unknown option.
		args = append(args, "--enable-debug-command", "yes")
	}
	if c.AppendFsync != "" {
		args = append(args, "--appendfsync", c.AppendFsync)
	}
	if c.MaxMemory != "" {
		args = append(args, "--maxmemory", c.MaxMemory)
	}
	if c.MaxMemoryPolicy != "" {
		args = append(args, "--maxmemory-policy", c.MaxMemoryPolicy)
	}
	return append(args, c.Args...)
}

func yesNo(on bool) string {
	if on {
		return "yes"
	}
	return "no"
}

func atLeast(number string, minimum int) bool {
	n, err := strconv.Atoi(number)
	return err == nil && n >= minimum
}

var versionPattern = regexp.MustCompile(`\bv=(\d+(?:\.\d+)*)`)

// binaryVersion asks the binary itself, since the options it takes depend on the answer.
func binaryVersion(ctx context.Context, binary string) (string, error) {
	out, err := exec.CommandContext(ctx, binary, "--version").Output() // #nosec G204 -- found on PATH by its fixed name
	if err != nil {
		return "", fmt.Errorf("redisproc: asking %s for its version: %w", binary, err)
	}
	match := versionPattern.FindSubmatch(out)
	if match == nil {
		return "", fmt.Errorf("redisproc: %s gave no version in %q", binary, out)
	}
	return string(match[1]), nil
}

// highestPort leaves room for the bus port of a cluster node, which lies 10,000 above.
const highestPort = 55_535

// freePort returns a loopback port that was free a moment ago. Another process may take it before
// the server does; Start notices that and asks again.
func freePort(ctx context.Context) (int, error) {
	for {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("redisproc: looking for a free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("redisproc: looking for a free port: %w", err)
		}
		if port <= highestPort {
			return port, nil
		}
	}
}
