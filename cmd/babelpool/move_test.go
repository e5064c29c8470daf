package main

import "testing"

// moved is what move prints as JSON.
type moved struct {
	DryRun   bool  `json:"dry_run"`
	Ready    int64 `json:"ready"`
	Dead     int64 `json:"dead_letters"`
	InFlight int64 `json:"in_flight"`
	Stayed   map[string]int64
}

func TestMove(t *testing.T) {
	eachLayout(t, func(t *testing.T, r *rig) {
		other, target := "zset", r.Prefix+"queues:shop"
		if r.layout == "zset" {
			other, target = "legacy", r.Prefix+"shop"
		}
		for _, text := range []string{body("a"), "no envelope", body("b")} {
			r.do("rpush", r.key(""), text)
		}
		r.do("rpush", r.key(".dlq"), body("dead"))
		words := "move orders shop --dead-letters --to-layout " + other
		if got := decoded[moved](r, words+" --dry-run"); !got.DryRun || got.Ready != 2 || got.Dead != 1 || got.Stayed["foreign"] != 1 {
			t.Errorf("dry run: %+v", got)
		}
		if got := r.run(words); got.code != exitUnwilling {
			t.Errorf("without --yes: exit %d", got.code)
		}
		if n := r.do("llen", r.key("")).Val(); n != int64(3) {
			t.Fatalf("%v left after a dry run and a refusal", n)
		}
		wantText(t, r.fine(words+" --yes"), "2 ready, 0 delayed and 1 dead letters moved", "1 stay: they are no envelopes")
		if n := r.do("llen", target).Val(); n != int64(2) {
			t.Errorf("%v have arrived", n)
		}
		if n := r.do("llen", r.key("")).Val(); n != int64(1) {
			t.Errorf("%v left", n)
		}
		if got := decoded[moved](r, "move orders shop --yes"); got.DryRun || got.Ready != 1 {
			t.Errorf("within the layout: %+v", got)
		}
	})
}

func TestMoveUsage(t *testing.T) {
	t.Parallel()
	r := newRig(t, "legacy")
	for words, piece := range map[string]string{
		"move orders":                           "name a queue and its target",
		"move orders orders":                    "is the queue itself",
		"move orders shop --to-layout list":     `--to-layout: "list" is neither`,
		"move orders orders:processing":         "R4",
		"move orders shop --limit -1 --dry-run": "Limit",
	} {
		got := r.run(words)
		if got.code != exitUsage {
			t.Errorf("%s: exit %d", words, got.code)
		}
		wantText(t, got.errOut, piece)
	}
}
