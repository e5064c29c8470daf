package router

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/flow"
)

// TestForbiddenKeysAreWarnedOfOnce holds E5: one line per key and process, with its JSON pointer.
func TestForbiddenKeysAreWarnedOfOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const bad = `{"job":"urn:a","trace_id":"t","data":{"card":"secret-4111"},"meta":{"id":"m-1","lang":"node","schema_version":1,` +
			`"max_retries":"secret-1","attempts":2,"source":3,"ts":4},"attempts":0,"timestamp":5}`
		pointers := []string{"/timestamp", "/meta/max_retries", "/meta/attempts", "/meta/source", "/meta/ts"}
		mux := NewMux() // all other URNs are unknown, and logged
		mux.HandleFunc("urn:a", returns(nil))
		g := newRig(4, Policy{}, mux, layouts...)
		done := g.running(t.Context())
		g.put(0, strings.Replace(bad, `"timestamp":5`, `"x":5`, 1))
		synctest.Wait()
		if n := len(g.logs.With("level=WARN", "E5")); n != len(pointers)-1 {
			t.Errorf("%d warnings, want one for each key there", n)
		}
		for i := range 100 {
			g.put(i%2, bad)
		}
		synctest.Wait()
		for _, p := range pointers {
			if got := g.logs.With("level=WARN", "E5", "key="+p+" ", "urn=urn:a", "id=m-1", "lang=node", "queue=orders"); len(got) != 1 {
				t.Errorf("%s: %d warnings", p, len(got))
			}
		}

		// Also after hostile URNs have driven everything else out of the memory of notices.
		time.Sleep(2 * noticeEvery)
		for i := range 2 * noticeMost {
			g.put(0, bodyOf(fmt.Sprint("urn:", i), 0, time.Now()))
			synctest.Wait()
			if i == noticeMost+10 {
				time.Sleep(2 * noticeEvery)
			}
			g.settlements(0)
		}
		g.put(0, bad)
		g.end()
		<-done
		if n := len(g.logs.With("level=WARN", "E5")); n != len(pointers) {
			t.Errorf("%d warnings in the end, want %d", n, len(pointers))
		}
		if got := g.logs.With("secret"); got != nil {
			t.Errorf("values are logged: %q", got[0])
		}
	})
}

// TestNoticesAreBounded logs a kind of failure once a minute per URN, and of noticeMost URNs at most. That there are more is
// told once, and hides no other kind.
func TestNoticesAreBounded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		text    string
		handler delivery.Handler
		kind    kind
		byURN   bool // else by queue
		body    func(urn string) string
	}{
		{"failed", "handler failed", returns(errBoom), kindFailed, true, nil},
		{"panicked", "handler panicked", panicsWith("kaboom"), kindPanicked, true, nil},
		{"unknown", "no handler for URN", NewMux(), kindUnknown, true, nil},
		{"poison", "no acceptable envelope", NewMux(), kindPoison, false, func(urn string) string { return urn }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newRig(2, Policy{}, tc.handler, flow.Legacy)
				done := g.running(t.Context())
				send := func(urn string) {
					text := bodyOf(urn, 0, time.Now())
					if tc.body != nil {
						text = tc.body(urn)
					}
					g.put(0, text)
					synctest.Wait()
					g.settlements(0)
				}
				logged := func() int { return len(g.logs.With(tc.text)) }
				for range 10 {
					send("urn:a")
				}
				if logged() != 1 {
					t.Errorf("logged %d times, want once", logged())
				}
				time.Sleep(noticeEvery - 1)
				send("urn:a")
				if logged() != 1 {
					t.Error("logged again within a minute")
				}
				time.Sleep(time.Nanosecond)
				send("urn:a")
				if logged() != 2 {
					t.Error("not logged again after a minute")
				}
				for i := range noticeMost + 100 {
					send(fmt.Sprint("urn:", i))
				}
				want, limits := 2, 0
				if tc.byURN {
					want, limits = noticeMost+1, 1 // urn:a takes a place, and was logged twice
				}
				if n := len(g.notices.again[tc.kind]); logged() != want || n > noticeMost {
					t.Errorf("logged %d times, want %d; %d remembered", logged(), want, n)
				}
				if n := len(g.logs.With("too many different messages")); n != limits {
					t.Errorf("that there are more is logged %d times, want %d", n, limits)
				}
				g.notices.hook("another kind", errBoom)
				if len(g.logs.With("another kind")) != 1 {
					t.Error("one kind hides another")
				}
				time.Sleep(noticeEvery)
				send("urn:b") // there is room again
				if logged() != want+1 {
					t.Errorf("logged %d times after a minute, want %d", logged(), want+1)
				}
				g.end()
				<-done
			})
		})
	}
}

// TestNamesInNoticesAreShort: URN, id and language come from the message, and a body may be of any size.
func TestNamesInNoticesAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 5000)
	huge := fmt.Errorf("cannot do it: %s", long)
	text := `{"job":"urn:` + long + `","trace_id":"t","data":{},"meta":{"id":"` + long + `","lang":"` + long +
		`","schema_version":1,"ts":1},"attempts":0}`
	for name, handler := range map[string]delivery.Handler{
		"failed": returns(huge), "panicked": panicsWith(huge), "unknown": NewMux(), "exited": delivery.HandlerFunc(exits),
	} {
		g := newRig(1, Policy{OnError: func(context.Context, error, envelope.Envelope, string) { panic(huge) }}, handler, flow.Legacy)
		g.put(0, text)
		g.end()
		_ = g.Run(t.Context())
		for _, line := range g.logs.Lines() {
			line, _, _ = strings.Cut(line, " stack=") // as deep as the handler was
			if n := strings.Count(line, "é"); n > 3*mostName/2+envelope.MaxErrorText/2 || strings.Contains(line, "\uFFFD") {
				t.Errorf("%s: %d of the letters in one line: %.200s", name, n, line)
			}
		}
		if len(g.logs.With("…")) == 0 {
			t.Errorf("%s: nothing was cut", name)
		}
		job := job{queue: "orders"}
		d := &delivery.Delivery{}
		d.URN, d.Meta.ID = long, long
		job.delivery.Store(d)
		if n := len(job.String()); n > 2*mostName+100 {
			t.Errorf("a job's name has %d bytes", n)
		}
	}
}

// TestPanicsAreLoggedWithTheirStack for whoever has to mend them (B20).
func TestPanicsAreLoggedWithTheirStack(t *testing.T) {
	t.Parallel()
	g := newRig(1, Policy{Delay: Delay{Policy: func(int64) float64 { panic("policy") }}}, panicsWith("kaboom"), flow.Zset)
	g.put(0, body(0))
	g.end()
	_ = g.Run(t.Context())
	got := g.logs.With("level=ERROR", "handler panicked", "kaboom", "id=m-1", "urn="+urn, "delivery=1", "stack=", "decide_test.go")
	if len(got) != 1 {
		t.Errorf("logged: %q", g.logs.With("panicked"))
	}
	if got := g.logs.With("level=ERROR", "backoff policy failed", "panic: policy"); len(got) != 1 {
		t.Errorf("logged: %q", g.logs.With("policy"))
	}
}

// TestBodiesAreNeverLogged sends a secret through everything that logs or names a message (B48).
func TestBodiesAreNeverLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		policies := []Policy{
			{},
			{MaxAttempts: 1, LegacyRetry: Requeue},
			{OnError: func(context.Context, error, envelope.Envelope, string) { panic("hook") }},
			{OnError: func(context.Context, error, envelope.Envelope, string) { runtime.Goexit() }},
			{OnUnknownURN: func(context.Context, error, envelope.Envelope, string) error { panic("hook") }},
			{Delay: Delay{Policy: func(int64) float64 { panic("policy") }}},
		}
		handlers := []delivery.Handler{
			returns(nil), returns(errBoom), returns(delivery.DeadLetter(errBoom)), panicsWith(1), delivery.HandlerFunc(exits), NewMux(),
		}
		lines := 0
		for _, policy := range policies {
			for _, handler := range handlers {
				g := newRig(1, policy, handler, layouts...)
				for q := range layouts {
					g.put(q, body(5), framed(body(5)), `{"card":"secret-4111"}`, "secret", framed("secret"), native)
				}
				g.Refused(t.Context(), 1, "secret")
				g.end()
				_ = g.Run(t.Context())
				if got := g.logs.With("secret"); got != nil {
					t.Fatalf("logged: %s", got[0])
				}
				lines += len(g.logs.With())
			}
		}
		if lines == 0 {
			t.Error("nothing was logged at all")
		}
	})
}
