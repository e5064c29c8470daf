package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/doctor"
)

// Mistakes in the command line change nothing, exit with 2, and are told with the flag or the command at fault.
func TestUsage(t *testing.T) {
	t.Parallel()
	for words, says := range map[string]string{
		"frob":                                 `there is no command "frob"`,
		"stats":                                "name at least one queue",
		"pause":                                "name at least one queue",
		"stats orders --every 1ms":             "--every",
		"stats orders --layout sorted":         `--layout: "sorted" is neither`,
		"stats orders --frob":                  "unknown flag: --frob",
		"stats orders:delayed":                 `"orders:delayed" ends in ":delayed"`,
		"stats orders --redis ftp://secret@x":  "--redis: the URL is not valid",
		"stats orders --cluster":               "(R3)",
		"stats orders --cluster --redis ftp:x": "--redis: the URL is not valid",
		"pause orders :delayed":                "(R4)",
	} {
		got := command(t, "", strings.Fields(words)...)
		if got.code != exitUsage || !strings.Contains(got.errOut, says) || got.out != "" {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", words, got.code, exitUsage, says, got.out, got.errOut)
		}
		if strings.Contains(got.errOut, "secret") {
			t.Errorf("%s: a password is told: %s", words, got.errOut)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"", "--help", "help stats", "stats --help", "completion bash"} {
		if got := command(t, "", strings.Fields(words)...); got.code != exitFine || got.out == "" || got.errOut != "" {
			t.Errorf("%q: exit %d\n%s", words, got.code, got.errOut)
		}
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"stats orders", "pause orders", "doctor orders", "stats orders --watch --json"} {
		got := command(t, "", append(strings.Fields(words), "--redis", "redis://:secret@127.0.0.1:1")...)
		if got.code != exitFailed || !strings.Contains(got.errOut, "not available") || strings.Contains(got.errOut, "secret") {
			t.Errorf("%s: exit %d\n%s%s", words, got.code, got.out, got.errOut)
		}
	}
}

func TestStats(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		r.do("rpush", r.key(""), body("m-1"), body("m-2"), body("m-3"))
		r.do("rpush", r.key(".dlq"), body("m-9"))
		got := decoded[[]queueStats](r, "stats orders empty")
		if len(got) != 2 || got[0].OldestAgeS == nil || *got[0].OldestAgeS < 1e6 {
			t.Fatalf("%+v", got)
		}
		got[0].OldestAgeS = nil
		want := []queueStats{{Queue: "orders", Layout: r.layout, Ready: 3, DeadLetters: 1}, {Queue: "empty", Layout: r.layout}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
		out := r.fine("stats orders empty")
		wantText(t, out, "queue", "oldest", "orders", "empty")
		if strings.Contains(out, "\x1b") {
			t.Errorf("colours, and this is no terminal: %q", out)
		}
	})
}

func TestWatchWithoutATerminal(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		r.do("rpush", r.key(""), body("m-1"))
		ctx, cancel := context.WithCancel(t.Context())
		lines := make(chan string, 10)
		done := make(chan int, 1)
		go func() {
			done <- run(ctx, []string{"stats", "orders", "--watch", "--every", "100ms", "--json", "--redis", r.URL, "--layout", r.layout, "--key-prefix", r.Prefix},
				strings.NewReader(""), toChannel(lines), toChannel(lines))
		}()
		for range 2 {
			wantText(t, <-lines, `[{"queue":"orders"`, `"ready":1`)
		}
		cancel()
		if code := <-done; code != exitFine {
			t.Errorf("exit %d when it is interrupted", code)
		}
	})
}

// toChannel is a writer that sends what is written.
type toChannel chan string

func (c toChannel) Write(p []byte) (int, error) {
	select {
	case c <- string(p):
	default:
	}
	return len(p), nil
}

func TestPauseAndResume(t *testing.T) { // R6
	eachLayout(t, func(t *testing.T, r *rig) {
		wantText(t, r.fine("pause orders"), "orders: paused")
		if r.Client.Exists(t.Context(), r.key(":paused")).Val() != 1 {
			t.Error("the key is not there")
		}
		if diff := cmp.Diff([]pausedQueue{{"orders", true, false}, {"other", true, true}}, decoded[[]pausedQueue](r, "pause orders other")); diff != "" {
			t.Errorf("paused again (-want +got):\n%s", diff)
		}
		wantText(t, r.fine("stats orders"), "paused")
		wantText(t, r.fine("resume orders"), "orders: resumed")
		wantText(t, r.fine("resume orders"), "orders: was not paused")
		if r.Client.Exists(t.Context(), r.key(":paused")).Val() != 0 {
			t.Error("the key is still there")
		}
	})
}

func TestDoctor(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		r.do("set", r.key(""), "of another type")
		got := r.run("doctor orders --json")
		wantText(t, got.out, `"worst": "problem"`, `"check": "key-type"`)
		if got.code != exitFailed || got.errOut != "" {
			t.Errorf("exit %d, %s", got.code, got.errOut)
		}
		got = r.run("doctor orders")
		wantText(t, got.out, "queue orders", "PROBLEM  key-type", "→ ")
		r.do("del", r.key(""))
		if r.layout == "legacy" {
			r.do("rpush", r.inFlight(), body("m-1\x1b[31m"))
			wantText(t, r.run("doctor orders").out, "PROBLEM  orphans", `"m-1\x1b[31m"`, "urn:babel:orders:created")
			wantText(t, r.run("doctor orders --json").out, `"id": "m-1\u001b[31m"`)
		}
	})
}

// A long list of messages is cut for people, not for programs.
func TestFindingsWithManyMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, "legacy")
	for i := range 25 {
		r.do("rpush", r.inFlight(), body("m-"+string(rune('a'+i))))
	}
	wantText(t, r.run("doctor orders").out, "… and 15 more")
	if n := strings.Count(r.run("doctor orders --json").out, `"id"`); n != 25 {
		t.Errorf("%d messages named, want 25", n)
	}
	if got := doctor.Worst(nil); got != doctor.OK {
		t.Errorf("nothing found is %s", got)
	}
}

func TestShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"orders": "orders", "": `""`, " orders": `" orders"`, "a\nb": `"a\nb"`, "\x1b[31mred": `"\x1b[31mred"`, "né": "né",
		"say \"no\"": `"say \"no\""`, "\xff": `"\xff"`, "\u202eevil": `"\u202eevil"`, strings.Repeat("x", 30): strings.Repeat("x", 19) + "…",
	} {
		if got := shown(text, 20); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

func TestAgo(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-1: "-", 0: "0s", 1234 * time.Millisecond: "1.2s", 83 * time.Second: "1m23s", 3*time.Hour + 5*time.Minute + time.Second: "3h5m",
		50*time.Hour + 40*time.Minute: "2d2h", 24 * 30 * time.Hour: "30d0h",
	} {
		if got := ago(d); got != want {
			t.Errorf("%d is shown as %q, want %q", d, got, want)
		}
	}
}

func TestTrend(t *testing.T) {
	t.Parallel()
	var tr trend
	if tr.rate() != "-" {
		t.Errorf("a rate of nothing: %s", tr.rate())
	}
	begin := time.Now()
	for i := range 40 {
		tr.add(int64(i*10), begin.Add(time.Duration(i)*time.Second))
	}
	if got := tr.rate(); got != "+10" {
		t.Errorf("rate %s, want +10", got)
	}
	if got := []rune(tr.line()); len(got) != remembered || got[len(got)-1] != '█' || got[0] == '█' {
		t.Errorf("line %q", string(got))
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	for answer, yes := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "": false, "y": true, "maybe\n": false} {
		var out strings.Builder
		if err := ask(strings.NewReader(answer), &out, "Delete all."); (err == nil) != yes {
			t.Errorf("%q: %v", answer, err)
		}
		wantText(t, out.String(), "Delete all. Go on? [y/N]")
	}
}
