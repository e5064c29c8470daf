package chaos

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func take(seed uint64, length time.Duration, n int) []Event {
	s := NewSchedule(seed, length)
	events := make([]Event, n)
	for i := range events {
		events[i] = s.Next()
	}
	return events
}

func TestASeedRepeatsItsSchedule(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(take(7, time.Minute, 200), take(7, time.Minute, 200)); diff != "" {
		t.Errorf("(-first +second)\n%s", diff)
	}
	if cmp.Equal(take(7, time.Minute, 200), take(8, time.Minute, 200)) {
		t.Error("two seeds have one schedule")
	}
	// Another length moves the faults, and changes nothing else.
	short, long := take(7, 5*time.Second, 50), take(7, time.Hour, 50)
	for i := range short {
		short[i].At, long[i].At = 0, 0
	}
	if diff := cmp.Diff(short, long); diff != "" {
		t.Errorf("(-short +long)\n%s", diff)
	}
}

func TestEveryRoundHasEveryKindAndShortRunsHaveARound(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{5 * time.Second, 10 * time.Second, time.Hour} {
		events := take(3, length, 3*len(round))
		for r := range 3 {
			seen := map[Kind]bool{}
			for _, e := range events[r*len(round) : (r+1)*len(round)] {
				seen[e.Kind] = true
			}
			for kind := ConsumerKill; kind <= ProxyDelay; kind++ {
				if !seen[kind] {
					t.Errorf("%s: round %d has no %s", length, r+1, kind)
				}
			}
		}
		for i := range events[1:] {
			if events[i+1].At < events[i].At {
				t.Errorf("%s: event %d comes before the one before it", length, i+1)
			}
		}
		if last := events[len(round)-1].At; last > length*85/100 {
			t.Errorf("%s: the first round ends only after %s", length, last)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	if got := spread(0, time.Second, 2*time.Second); got != time.Second {
		t.Errorf("the least is %s", got)
	}
	if got := spread(1<<63, time.Second, 2*time.Second); got != 1500*time.Millisecond {
		t.Errorf("the middle is %s", got)
	}
	if got := spread(1<<64-1, time.Second, 2*time.Second); got > 2*time.Second || got < 1999*time.Millisecond {
		t.Errorf("the most is %s", got)
	}
}

func TestKindsHaveNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, kind := range Kinds() {
		if name := kind.String(); name == "" || seen[name] {
			t.Errorf("kind %d is called %q", kind, name)
		}
		seen[kind.String()] = true
	}
}
