package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/internal/testredis"
)

// envCommand makes the tests' program the command.
const envCommand = "BQ_LOADTEST_TEST_COMMAND"

func TestMain(m *testing.M) {
	// A run starts its own program again for each consumer process, and tests start it as the command.
	if os.Getenv(envMember) != "" || os.Getenv(envCommand) != "" {
		plantMutant(os.Getenv(envMutant))
		main()
	}
	redis.SetLogger(silence{})
	testredis.Main(m)
}

// outcome is what one command did.
type outcome struct {
	code           int
	report         report
	stdout, stderr string
}

// runCommand runs the command with these flags, separated by spaces, and -json -.
func runCommand(ctx context.Context, t *testing.T, flags string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o := outcome{code: run(ctx, strings.Fields(flags+" -json -"), &stdout, &stderr)}
	o.stdout, o.stderr = stdout.String(), stderr.String()
	if o.stdout == "" {
		return o
	}
	dec := json.NewDecoder(strings.NewReader(o.stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o.report); err != nil {
		t.Fatalf("stdout is no report: %v\n%s", err, o.stdout)
	}
	return o
}

// backend is a server of a test's own, in which every queue is the test's.
type backend struct {
	url    string
	client *redis.Client
}

// alone runs a test on an imitation and on a real server, each its own.
func alone(t *testing.T, fn func(t *testing.T, b backend)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		mini := testredis.Mini(t)
		fn(t, backend{"redis://" + mini.Addr(), testredis.Client(t, mini.Addr())})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := testredis.Server(t, redisproc.Config{})
		fn(t, backend{server.URL(), testredis.Client(t, server.URL())})
	})
}

// readyKey waits for the run's ready list to have so many messages and returns its key.
func (b backend) readyKey(t *testing.T, atLeast int64) string {
	t.Helper()
	var found string
	testredis.Eventually(t, 20*time.Second, func() bool {
		keys, err := b.client.Keys(t.Context(), "*"+queuePrefix+"*").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			name := strings.TrimPrefix(key, "queues:")
			if !strings.ContainsAny(name, ":.") && b.client.LLen(t.Context(), key).Val() >= atLeast {
				found = key
				return true
			}
		}
		return false
	}, "no ready list with %d messages", atLeast)
	return found
}
