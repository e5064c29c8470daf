package router

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// native is a job of Laravel's own (Z8).
const native = `{"uuid":"u","displayName":"App\\Jobs\\Foo","job":"Illuminate\\Queue\\CallQueuedHandler@call",` +
	`"data":{"commandName":"App\\Jobs\\Foo"},"attempts":0}`

// poisoned is the record of a body that is one JSON object, but no envelope (D2). attempts are the body's own, 0
// where they cannot be read.
func poisoned(body, reason string, attempts int64) string {
	text, kind := "envelope: poison message: "+reason, "*envelope.PoisonError"
	return envelope.DeadLetterRecord(body, envelope.DeadLetter{
		Reason: "poison", Error: &text, Exception: &kind, FailedAt: time.Now().UnixMilli(), OriginalQueue: "orders",
		Attempts: attempts,
	})
}

// TestPoison is the table of E3, D4 and Z8 for what no handler can take: what is no object goes in raw, in
// the bytes it had in ready; an object takes the record; foreign jobs of a zset queue stay as they were.
func TestPoison(t *testing.T) {
	t.Parallel()
	const noMeta = `{"job":"urn:a","trace_id":"t","data":{},"attempts":4,"meta":null}`
	const noURN = "neither job nor urn is a non-blank string"
	deep := strings.Repeat("[", 12000) + strings.Repeat("]", 12000)
	for _, tc := range []struct {
		name    string
		ready   string
		legacy  func() string // the dead letter
		zset    func() string
		foreign bool
	}{
		{"text", "hello", nil, nil, false},
		{"nothing", "", nil, nil, false},
		{"a number", "5", nil, nil, false},
		{"an array", "[]", nil, nil, false},
		{"half an object", "{", nil, nil, false},
		{"not a number", `{"data":NaN}`, nil, nil, false},
		{"invalid UTF-8", "{\"job\":\"\xff\"}", nil, nil, false},
		{"NUL bytes", "\x00\x00", nil, nil, false},
		{"deep", deep, nil, nil, false},
		{"spaces", strings.Repeat(" ", 5<<20), nil, nil, false},
		{
			"an object", `{"attempts":4}`,
			func() string { return poisoned(`{"attempts":4}`, noURN, 4) }, func() string { return poisoned(`{"attempts":5}`, noURN, 5) }, false,
		},
		{
			"an object whose attempts cannot be read", `{"attempts":"4"}`,
			func() string { return poisoned(`{"attempts":"4"}`, noURN, 0) }, func() string { return poisoned(`{"attempts":"4"}`, noURN, 0) }, false,
		},
		{
			"an object without attempts", `{}`,
			func() string { return poisoned(`{}`, noURN, 0) }, func() string { return poisoned(`{"attempts":1}`, noURN, 1) }, false,
		},
		{
			"no meta", noMeta,
			func() string { return poisoned(noMeta, "meta is not an object", 4) },
			func() string {
				return poisoned(strings.Replace(noMeta, `"attempts":4`, `"attempts":5`, 1), "meta is not an object", 5)
			}, false,
		},
		{
			"an object in a frame", framed(`{"a":1}`),
			func() string { return poisoned(`{"a":1}`, noURN, 0) }, func() string { return poisoned(`{"a":1}`, noURN, 0) }, false,
		},
		{"text in a frame", framed("hello"), nil, nil, false},
		{
			"a native job", native, // in a legacy queue it is poison like any other
			func() string { return poisoned(native, "trace_id is not a non-blank string", 0) }, nil, true,
		},
		{
			"a native job in a frame", framed(native),
			func() string { return poisoned(native, "trace_id is not a non-blank string", 0) }, nil, true,
		},
	} {
		for _, layout := range layouts {
			dead, foreign := tc.legacy, false
			if layout == flow.Zset {
				dead, foreign = tc.zset, tc.foreign
			}
			for _, policy := range []Policy{{}, {Poison: BadLeave}, {ForeignJobs: BadLeave}, {Poison: BadLeave, ForeignJobs: BadLeave}} {
				strategy := policy.Poison
				if foreign {
					strategy = policy.ForeignJobs
				}
				t.Run(tc.name+"/"+layout.String(), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						want := flow.Settlement{Op: flow.DeadLetter, Text: tc.ready}
						if dead != nil {
							want.Text = dead()
						}
						if strategy == BadLeave {
							want = flow.Settlement{Op: flow.Leave}
						}
						checkPoison(t, layout, policy, tc.ready, want)
					})
				})
			}
		}
	}
}

func checkPoison(t *testing.T, layout flow.Layout, policy Policy, ready string, want flow.Settlement) {
	t.Helper()
	policy.MaxAttempts = 1 // poison is decided before attempts are looked at
	g := newRig(1, policy, returns(nil), layout)
	r := g.put(0, ready)[0]
	g.end()
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := g.settlements(0)
	if len(all) != 1 || all[0].Reservation != r || r.State() != flow.Settled {
		t.Fatalf("%d settlements, state %d", len(all), r.State())
	}
	if s := all[0]; s.Op != want.Op || s.Text != want.Text || s.Delay != 0 {
		t.Errorf("%s of %.200q, want %s of %.200q", s.Op, s.Text, want.Op, want.Text)
	}
	if diff := cmp.Diff(map[string]int64{"Poison": 1}, g.counted(0)); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
	calls := g.reports()
	if len(calls) != 1 || !errors.Is(calls[0].err, envelope.ErrPoison) || calls[0].raw != ready {
		t.Fatalf("OnError is told %d times", len(calls))
	}
	if diff := cmp.Diff(envelope.Envelope{}, calls[0].env); diff != "" {
		t.Errorf("OnError gets an envelope (-want +got):\n%s", diff)
	}
	if strings.Contains(calls[0].err.Error(), "another system") != (layout == flow.Zset && strings.Contains(ready, "displayName")) {
		t.Errorf("told of %v", calls[0].err)
	}
}

// TestRefused reports what the reserve script buried by itself (Z3).
func TestRefused(t *testing.T) {
	t.Parallel()
	for raw, text := range map[string]string{
		"hello":                   "poison message",
		body(envelope.MaxCounter): "attempts cannot be raised any further", // an envelope otherwise
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newRig(1, Policy{}, returns(nil), flow.Legacy, flow.Zset)
			done := g.running(t.Context())
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			g.Refused(ctx, 1, raw)
			synctest.Wait()
			if diff := cmp.Diff(map[string]int64{"Poison": 1, "DeadLettered": 1}, g.counted(1)); diff != "" || len(g.counted(0)) != 0 {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
			calls := g.reports()
			if len(calls) != 1 || !errors.Is(calls[0].err, envelope.ErrPoison) || !strings.Contains(calls[0].err.Error(), text) {
				t.Fatalf("OnError is told %v", calls)
			}
			if calls[0].raw != raw || calls[0].env.URN != "" {
				t.Errorf("OnError gets %+v and %s", calls[0].env, calls[0].raw)
			}
			if got := g.logs.With("no acceptable envelope", "queue=orders"); len(got) != 1 {
				t.Errorf("logged: %q", got)
			}
			g.end()
			<-done
		})
	}
}

// TestRefusedDoesNotWaitForOnError: a hook that hangs holds up neither the reserver nor, once abandoned, the
// stop; what waits for it is bounded; the reports come in order.
func TestRefusedDoesNotWaitForOnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang, told := make(chan struct{}), []string{}
		policy := Policy{OnError: func(_ context.Context, _ error, _ envelope.Envelope, raw string) {
			told = append(told, raw)
			<-hang
		}}
		g := newRig(1, policy, returns(nil), flow.Zset)
		done := g.running(t.Context())
		for i := range mostRefusals + 3 {
			g.Refused(t.Context(), 0, strconv.Itoa(i))
			synctest.Wait()
		}
		if len(told) != 1 {
			t.Fatalf("%d reports while the first hangs", len(told))
		}
		if n := len(g.refused.waiting); n != mostRefusals {
			t.Errorf("%d reports wait, want %d: one is with the hook, and two were dropped", n, mostRefusals)
		}
		if got := g.logs.With("OnError is too slow"); len(got) != 1 {
			t.Errorf("logged %d times that reports are dropped, want once", len(got))
		}
		g.end()
		if isClosed(done) {
			t.Fatal("Run does not wait for the reports")
		}
		if names := g.Abandon(); len(names) != 1 || !strings.Contains(names[0], "OnError") {
			t.Errorf("abandoned %q", names)
		}
		<-done
		close(hang)
		synctest.Wait()
		if len(told) != 1 || told[0] != "0" {
			t.Errorf("told %q after the end", told)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var told []string
		policy := Policy{OnError: func(_ context.Context, _ error, _ envelope.Envelope, raw string) { told = append(told, raw) }}
		g := newRig(1, policy, returns(nil), flow.Zset)
		done := g.running(t.Context())
		for _, raw := range []string{"a", "b", "c"} {
			g.Refused(t.Context(), 0, raw)
		}
		g.end()
		<-done
		if diff := cmp.Diff([]string{"a", "b", "c"}, told); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestOnErrorOutlivesTheHandlersContext lets the hook write to its tracker although the run was cancelled.
func TestOnErrorOutlivesTheHandlersContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var problems []error
		policy := Policy{HandlerTimeout: time.Second, OnError: func(ctx context.Context, _ error, _ envelope.Envelope, _ string) {
			_, deadline := ctx.Deadline()
			if ctx.Err() != nil || deadline || ctx.Value(key{}) != 7 {
				problems = append(problems, errors.New("cancelled, or not a child of Run's context"))
			}
			problems = append(problems, nil)
		}}
		g := newRig(1, policy, ended(flow.ErrHandlerTimeout, func() error { return errBoom }), flow.Legacy)
		g.put(0, body(0), "hello")
		g.end()
		_ = g.Run(context.WithValue(t.Context(), key{}, 7))
		if len(problems) != 2 || errors.Join(problems...) != nil {
			t.Errorf("%d calls: %v", len(problems), errors.Join(problems...))
		}
	})
}

// TestFailingOnErrorIsLogged and does no more harm (B20).
func TestFailingOnErrorIsLogged(t *testing.T) {
	t.Parallel()
	for text, hook := range map[string]func(){
		"OnError panicked": func() { panic("kaboom") },
		"OnError failed":   runtime.Goexit,
	} {
		g := newRig(1, Policy{OnError: func(context.Context, error, envelope.Envelope, string) { hook() }}, returns(errBoom), flow.Legacy)
		g.put(0, body(0), "hello", body(0))
		g.end()
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(g.settlements(0)); n != 3 {
			t.Errorf("%s: %d settlements, want 3", text, n)
		}
		if n := len(g.logs.With("level=ERROR", text)); n != 1 {
			t.Errorf("%s: logged %d times, want once a minute", text, n)
		}
	}
}
