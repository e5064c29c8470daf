package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/redrive"
)

// bury puts a dead letter in the queue's.
func (r *rig) bury(id, reason, text string) {
	r.t.Helper()
	r.do("rpush", r.key(".dlq"), envelope.DeadLetterRecord(body(id), envelope.DeadLetter{
		Reason: reason, Error: &text, FailedAt: time.Now().UnixMilli(), OriginalQueue: "orders", Attempts: 3,
	}))
}

// lists counts what is ready and what is dead.
func (r *rig) lists() [2]int64 {
	r.t.Helper()
	return [2]int64{r.Client.LLen(r.t.Context(), r.key("")).Val(), r.Client.LLen(r.t.Context(), r.key(".dlq")).Val()}
}

func TestDLQListAndShow(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		r.bury("m-1", "failed", "no \x1b[31mspace\nleft")
		r.bury("m-2", "poison", "worker lost")
		r.do("rpush", r.key(".dlq"), "no envelope\x00")
		got := decoded[[]letter](r, "dlq list orders")
		if len(got) != 3 || got[0].ID != "m-1" || got[1].Reason != "poison" || got[2].Bad == "" || got[0].Record != nil {
			t.Errorf("%+v", got)
		}
		out := r.fine("dlq list orders --limit 2")
		wantText(t, out, "m-1", "urn:babel:orders:created", "failed", "2 of 3")
		if strings.ContainsAny(out, "\x1b\x00") {
			t.Errorf("control characters reach the terminal: %q", out)
		}
		if got := decoded[[]letter](r, "dlq list orders --reason poison --newer-than 1h"); len(got) != 1 || got[0].ID != "m-2" {
			t.Errorf("%+v", got)
		}
		out = r.fine("dlq show orders m-1")
		wantText(t, out, "m-1", "failed", `"no \x1b[31mspace\nleft"`, `{"job":"urn:babel:orders:created"`)
		if got := decoded[[]letter](r, "dlq show orders m-2 m-9"); len(got) != 1 || !strings.Contains(*got[0].Record, `"dead_letter"`) {
			t.Errorf("%+v", got)
		}
		if got := r.run("dlq show orders m-9"); got.code != exitFailed {
			t.Errorf("exit %d of a message that is not there", got.code)
		}
	})
}

func TestDLQRedrive(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		r.bury("m-1", "failed", "x")
		r.bury("m-2", "poison", "x")
		r.do("rpush", r.key(".dlq"), "no envelope")
		// Without a terminal nobody can say yes.
		if got := r.run("dlq redrive orders"); got.code != exitUnwilling || !strings.Contains(got.errOut, "--yes") {
			t.Errorf("exit %d, %s", got.code, got.errOut)
		}
		wantText(t, r.fine("dlq redrive orders --dry-run"), "2 of 3 looked at would be sent back, to queue orders", "1 stay: no acceptable envelope")
		if diff := cmp.Diff([2]int64{0, 3}, r.lists()); diff != "" {
			t.Errorf("nothing may change (-want +got):\n%s", diff)
		}
		report := decoded[redrive.Report](r, "dlq redrive orders --reason failed --yes")
		if report.Moved != 1 || report.Targets["orders"] != 1 {
			t.Errorf("%+v", report)
		}
		wantText(t, r.fine("dlq redrive orders --yes --to orders --raw"), "2 of 2 looked at sent back")
		if diff := cmp.Diff([2]int64{3, 0}, r.lists()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		wantText(t, r.fine("dlq redrive orders"), "0 of 0") // nothing to ask about
		for _, words := range []string{"dlq redrive orders --raw", "dlq redrive", "dlq redrive orders:notify", "dlq frob", "dlq redrive orders --to :delayed"} {
			if got := r.run(words); got.code != exitUsage {
				t.Errorf("%s: exit %d\n%s", words, got.code, got.errOut)
			}
		}
	})
}

func TestDLQPurgeExportImport(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		for _, id := range []string{"m-1", "m-2", "m-3"} {
			r.bury(id, "failed", "x")
		}
		file := filepath.Join(t.TempDir(), "letters.jsonl")
		if err := os.WriteFile(file, []byte(r.run("dlq export orders").out), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := r.run("dlq purge orders"); got.code != exitUnwilling {
			t.Errorf("exit %d", got.code)
		}
		wantText(t, r.fine("dlq purge orders --dry-run --limit 2"), "2 dead letters would be removed")
		wantText(t, r.fine("dlq purge orders --limit 1 -y"), "1 dead letters removed")
		wantText(t, r.fine("dlq purge orders -y --json"), `"purged": 2`)
		wantText(t, r.fine("dlq import orders "+file), "3 records added")
		if diff := cmp.Diff([2]int64{0, 3}, r.lists()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		r.stdin = "no export"
		if got := r.run("dlq import orders"); got.code != exitFailed || !strings.Contains(got.errOut, "0 records were added, then: ") {
			t.Errorf("exit %d, %s", got.code, got.errOut)
		}
		if got := r.run("dlq import orders /no/such/file"); got.code != exitUsage {
			t.Errorf("exit %d, %s", got.code, got.errOut)
		}
	})
}
