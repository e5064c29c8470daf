// Package examples_test builds the examples and runs them as a reader would.
package examples_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// patience is how long an example may take to print what it should.
const patience = time.Minute

func TestExamples(t *testing.T) {
	t.Parallel()
	ends := map[string]bool{"tracing": true, "idempotent": true, "batch": true} // by themselves
	for name, want := range map[string][]string{
		"hello":        {"published ", "order 1042"},
		"laravel-zset": {"delivery 1 water the plants", "delivery 2 water the plants"},
		"shutdown":     {"health on "},
		"tracing":      {"mail sent", "span publish urn:babel:mails:wanted of trace ", "span process urn:babel:mails:wanted of trace "},
		"idempotent":   {"published payment-", "charged for payment-", "both are acked"},
		"batch":        {"stored ", "all are stored"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testredis.Server(t, redisproc.Config{})
			binary := filepath.Join(t.TempDir(), "example")
			if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./"+name).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, binary)
			cmd.Env = append(os.Environ(), "BQ_REDIS_URL="+server.URL(), "HEALTH_ADDR=127.0.0.1:0")
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			cmd.Stderr = &log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines, left := bufio.NewScanner(stdout), want
			for len(left) > 0 && lines.Scan() {
				if strings.HasPrefix(lines.Text(), left[0]) {
					left = left[1:]
				}
			}
			if len(left) > 0 {
				t.Errorf("it never printed %q", left)
			}
			if !ends[name] { // the others drain and end well when they are asked to
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			for lines.Scan() {
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v\n%s", err, log.String())
			}
		})
	}
}

// Each folder is an example, and each example is run.
func TestEveryExampleIsRun(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("examples_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.Contains(string(text), `"`+e.Name()+`":`) {
			t.Errorf("examples/%s is not run", e.Name())
		}
	}
}
