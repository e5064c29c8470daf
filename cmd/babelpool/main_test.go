package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/testredis"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{})
	testredis.Main(m)
}

// rig is a queue "orders" of one layout, on a real server, and a way to run the command on it.
type rig struct {
	testredis.Backend
	t      *testing.T
	layout string
	stdin  string
}

// eachLayout runs a test in both layouts.
func eachLayout(t *testing.T, fn func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	for _, layout := range []string{"legacy", "zset"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			fn(t, newRig(t, layout))
		})
	}
}

func newRig(t *testing.T, layout string) *rig {
	t.Helper()
	return &rig{Backend: testredis.Real(t), t: t, layout: layout}
}

// result is what a run of the command gave.
type result struct {
	code        int
	out, errOut string
}

// run runs the command with words, split at spaces.
func (r *rig) run(words string) result {
	r.t.Helper()
	args := append(strings.Fields(words), "--redis", r.URL, "--layout", r.layout, "--key-prefix", r.Prefix)
	return command(r.t, r.stdin, args...)
}

func command(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// fine wants a run without an error, and returns its output.
func (r *rig) fine(words string) string {
	r.t.Helper()
	got := r.run(words)
	if got.code != exitFine || got.errOut != "" {
		r.t.Fatalf("babelpool %s: exit %d\n%s%s", words, got.code, got.out, got.errOut)
	}
	return got.out
}

// decoded is the JSON a run prints.
func decoded[T any](r *rig, words string) T {
	r.t.Helper()
	var v T
	out := r.fine(words + " --json")
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		r.t.Fatalf("babelpool %s prints no JSON: %v\n%s", words, err, out)
	}
	return v
}

// key is a key of the queue.
func (r *rig) key(suffix string) string {
	if r.layout == "zset" {
		return r.Prefix + "queues:orders" + suffix
	}
	return r.Prefix + "orders" + suffix
}

// inFlight is the key of the messages in flight.
func (r *rig) inFlight() string {
	if r.layout == "zset" {
		return r.key(":reserved")
	}
	return r.key(":processing")
}

func (r *rig) do(words ...any) *redis.Cmd {
	r.t.Helper()
	cmd := r.Client.Do(r.t.Context(), words...)
	if cmd.Err() != nil {
		r.t.Fatalf("%v: %v", words, cmd.Err())
	}
	return cmd
}

// body is a stored message.
func body(id string) string {
	quoted, _ := json.Marshal(id)
	return fmt.Sprintf(`{"job":"urn:babel:orders:created","trace_id":"t","data":{},`+
		`"meta":{"id":%s,"queue":"orders","lang":"go","schema_version":1,"created_at":1749132727000},"attempts":0}`, quoted)
}

// wantText checks that a text has each piece.
func wantText(t *testing.T, text string, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		if !strings.Contains(text, piece) {
			t.Errorf("%q is not in\n%s", piece, text)
		}
	}
}
