package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/internal/testredis"
)

// TestEndToEnd runs small tests of every kind and looks at the books, and at what is left on the server.
func TestEndToEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags string
		check func(t *testing.T, r report)
	}{
		"legacy": {"-messages 300", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 300)
			expect(t, "redelivered", r.Redelivered, 0)
		}},
		"zset": {"-messages 300 -layout zset", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 300)
			expect(t, "redelivered", r.Redelivered, 0)
		}},
		"legacy, failing, left to their leases": {"-messages 300 -fail 0.05 -retry-after 2s", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 300)
			expect(t, "redelivered", r.Redelivered, injected(300, 0.05))
		}},
		"legacy, failing, requeued": {
			"-messages 300 -fail 0.3 -legacy-retry requeue -max-attempts 2",
			func(t *testing.T, r report) {
				expect(t, "dead-lettered", r.DeadLettered, hopeless(300, 0.3, 2))
				expect(t, "acked", r.Acked, 300-hopeless(300, 0.3, 2))
			},
		},
		"zset, failing, delayed": {"-messages 300 -layout zset -fail 0.05 -backoff 1s", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 300)
			expect(t, "redelivered", r.Redelivered, injected(300, 0.05))
		}},
		"zset, all dead-lettered": {"-messages 300 -layout zset -fail 1 -max-attempts 1", func(t *testing.T, r report) {
			expect(t, "dead-lettered", r.DeadLettered, 300)
			if r.RedisCPU != nil {
				t.Error("Redis CPU per acked message, and none was acked")
			}
		}},
		"for a time": {"-duration 300ms -rate 1000", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 300)
		}},
		"prefilled": {"-messages 300 -prefill -layout zset", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 300)
			if r.LatencyMS != nil {
				t.Error("latency beside -prefill")
			}
		}},
		"large messages": {"-messages 20 -payload 100000", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 20)
		}},
		"slow handlers": {"-messages 100 -handler-time 20ms -concurrency 50", func(t *testing.T, r report) {
			expect(t, "acked", r.Acked, 100)
			if r.AckedPerS > 50/0.02 {
				t.Errorf("%.0f messages per second; 50 workers of 20 ms each cannot", r.AckedPerS)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alone(t, func(t *testing.T, b backend) {
				const bystander = queuePrefix + "ffffffff"
				if err := b.client.RPush(t.Context(), bystander, "another run's message").Err(); err != nil {
					t.Fatal(err)
				}
				o := runCommand(t.Context(), t, tt.flags+" -redis "+b.url)
				if o.code != exitBalanced || !o.report.Reconciled || o.report.Lost != 0 {
					t.Fatalf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
				}
				expect(t, "duplicated", o.report.Duplicated, 0)
				expect(t, "left", o.report.LeftReady+o.report.LeftInFlight+o.report.LeftDelayed, 0)
				if r := o.report; (r.LatencyMS == nil) != r.Config.Prefill || r.ClientCPU == nil && r.Acked > 0 || r.PublishPerS <= 0 {
					t.Errorf("latency, client CPU or rate is missing:\n%s", o.stdout)
				}
				tt.check(t, o.report)
				if keys := b.client.Keys(t.Context(), "*").Val(); !slices.Equal(keys, []string{bystander}) {
					t.Errorf("keys after the run: %q; the run's own must be gone, and no other", keys)
				}
			})
		})
	}
}

func expect(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// injected is how many deliveries of so many messages fail on purpose until all have succeeded.
func injected(messages int64, p float64) (failures int64) {
	for seq := range messages {
		for run := 1; fails(seq, run, p); run++ {
			failures++
		}
	}
	return failures
}

// hopeless is how many messages fail in each of their first n deliveries.
func hopeless(messages int64, p float64, n int) (count int64) {
	for seq := range messages {
		run := 1
		for run <= n && fails(seq, run, p) {
			run++
		}
		if run > n {
			count++
		}
	}
	return count
}

func TestAnInterruptAccountsForWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "-layout zset", "-prefill", "-rate 5000"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			alone(t, func(t *testing.T, b backend) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				var o outcome
				var g errgroup.Group
				g.Go(func() error {
					o = runCommand(ctx, t, "-messages 20000 -concurrency 2 -prefetch 8 -handler-time 20ms -redis "+b.url+" "+flags)
					return nil
				})
				b.readyKey(t, 100)
				interrupt()
				_ = g.Wait() // never fails
				r := o.report
				if o.code != exitBalanced || !r.Reconciled || r.LeftReady == 0 || r.LeftInFlight != 0 || r.Acked+r.LeftReady != r.Published {
					t.Errorf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
				}
				if !strings.Contains(o.stderr, "interrupted") {
					t.Errorf("stderr does not tell of the interrupt:\n%s", o.stderr)
				}
				if keys := b.client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
					t.Errorf("keys after the run: %q", keys)
				}
			})
		})
	}
}

func TestTheEmbeddedChoiceWithoutARedis(t *testing.T) { // changes the environment, so not parallel
	t.Setenv("PATH", t.TempDir())
	t.Setenv(envRedis, "")
	o := runCommand(t.Context(), t, "-messages 50")
	if o.code != exitBalanced || o.report.Redis.Source != sourceMini || !strings.Contains(o.stderr, "using miniredis") {
		t.Errorf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
	}
	if o.report.RedisCPU != nil || o.report.ClientCPU != nil {
		t.Error("CPU of a Redis in the same process")
	}
}

func TestTheEmbeddedChoiceWithARedis(t *testing.T) { // changes the environment, so not parallel
	testredis.Require(t)
	t.Setenv(envRedis, "")
	o := runCommand(t.Context(), t, "-messages 50")
	r := o.report
	if o.code != exitBalanced || r.Redis.Source != sourceOwn || !strings.Contains(r.Redis.Version, ".") || r.RedisCPU == nil {
		t.Errorf("code %d\n%s\n%s", o.code, o.stdout, o.stderr)
	}
}

func TestAnUnreachableServerIsNamedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	o := runCommand(t.Context(), t, "-redis redis://me:secret@127.0.0.1:1")
	if o.code != exitFailed || !strings.Contains(o.stderr, "-redis") || !strings.Contains(o.stderr, "127.0.0.1:1") ||
		strings.Contains(o.stderr, "secret") || o.stdout != "" {
		t.Errorf("code %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
}

func TestTheReportGoesToAFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(name, bytes.Repeat([]byte("old\n"), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"-redis", "miniredis", "-messages", "50", "-json", name}, &stdout, &stderr)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil || code != exitBalanced || r.Acked != 50 {
		t.Errorf("code %d, %v\n%s", code, err, text)
	}
	if !strings.Contains(stdout.String(), "The books balance") || stderr.Len() > 0 {
		t.Errorf("stdout %q, stderr %q; the table belongs on stdout here", &stdout, &stderr)
	}
}

func TestJSONNamesAreStable(t *testing.T) {
	t.Parallel()
	o := runCommand(t.Context(), t, "-redis miniredis -messages 1 -payload 1")
	var names []string
	dec := json.NewDecoder(strings.NewReader(o.stdout))
	depth, key := 0, false
	for {
		token, err := dec.Token()
		if err != nil {
			break
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' {
				depth++
			} else {
				depth--
			}
			key = true
		case string:
			if key {
				names = append(names, strings.Repeat(" ", depth-1)+v)
			}
			key = !key
		default:
			key = true
		}
	}
	const want = `config| redis| layout| messages| duration| rate| processes| concurrency| prefetch| batch| payload| handler_time| fail| backoff|` +
		` retry_after| legacy_retry| max_attempts| prefill|redis| source| version|published|acked|redelivered|duplicated|` +
		`dead_lettered|left_ready|left_in_flight|left_delayed|lost|reconciled|publish_per_s|acked_per_s|redis_cpu_us_per_msg|` +
		`client_cpu_us_per_msg|latency_ms| p50| p90| p99| p999| max|missed_sends|late_ms_max|processes`
	if got := strings.Join(names, "|"); got != want {
		t.Errorf("names\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(o.stderr, "-payload: the smallest envelope") {
		t.Errorf("no word of the envelope that is larger than asked for: %s", o.stderr)
	}
}

func TestLongRunsOutlastALookAtTheClock(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	args := strings.Fields("-redis miniredis -messages 210 -rate 100")
	begin := time.Now()
	if code := run(t.Context(), args, &stdout, &stderr); code != exitBalanced {
		t.Errorf("code %d\n%s", code, &stderr)
	}
	if d := time.Since(begin); d < 2*time.Second {
		t.Errorf("209 hundredths of a second took %s", d)
	}
	if !strings.Contains(stderr.String(), "2.0 s") || !strings.Contains(stderr.String(), " of 210") {
		t.Errorf("no line of progress after 2 s: %q", &stderr)
	}
}
