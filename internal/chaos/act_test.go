package chaos

import "testing"

func TestDecisionsFollowTheirOdds(t *testing.T) {
	t.Parallel()
	const messages = 400_000
	counts := map[Act]float64{}
	for seq := range int64(messages) {
		act := Decide(1, seq, 1)
		if act != Decide(1, seq, 1) {
			t.Fatal("a decision is not repeated")
		}
		counts[act]++
	}
	for _, o := range odds {
		want := float64(o.parts) / wholeParts * messages
		if got := counts[o.act]; got < 0.8*want || got > 1.2*want {
			t.Errorf("act %d: %v times, want about %v", o.act, got, want)
		}
	}
}

func TestSeedsDecideDifferently(t *testing.T) {
	t.Parallel()
	same := 0
	for seq := range int64(10_000) {
		if Decide(1, seq, 1) != Work && Decide(2, seq, 1) != Work {
			same++
		}
	}
	if same > 20 { // two independent decisions of 2 %: about 4
		t.Errorf("two seeds agree on %d failures", same)
	}
}

func TestEveryMessageEndsAndOnlyFirstRunsAreLong(t *testing.T) {
	t.Parallel()
	long := 0
	for seq := range int64(20_000) {
		first := Decide(5, seq, 1)
		if first.overruns() {
			long++
		}
		for run := 2; run < 20; run++ {
			act := Decide(5, seq, run)
			switch {
			case act.overruns():
				t.Fatalf("run %d of message %d is long", run, seq)
			case first.overruns() && run <= failsBehind && act != Fail:
				t.Fatalf("run %d of message %d, whose first was long, does not fail", run, seq)
			case run >= sound && act != Work:
				t.Fatalf("run %d of message %d still goes wrong", run, seq)
			}
		}
	}
	if long == 0 {
		t.Error("no first run is long")
	}
}
