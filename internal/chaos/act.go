package chaos

// Act is what a handler does.
type Act int

// The acts.
const (
	Work        Act = iota // what it does without faults
	Fail                   // return an error
	Panic                  // panic
	Exit                   // runtime.Goexit
	Overrun                // work on beyond the lease and return nil
	OverrunFail            // work on beyond the lease and return an error
)

// odds are the acts of a message's run, in parts of 10,000. What is left is Work.
var odds = []struct {
	act   Act
	parts uint64
}{{Fail, 100}, {Panic, 20}, {Exit, 20}, {Overrun, 40}, {OverrunFail, 40}}

const (
	wholeParts = 10_000

	// sound is the first run that always works, so that every message ends.
	sound = 6

	// failsBehind is the last run that fails because the message's first run went beyond its lease.
	failsBehind = 3
)

// Decide says what the handler of a message does in a run, from 1.
//
// Only a first run goes beyond its lease, and then the runs after it fail. So the message is redelivered, failed and
// waiting again when the first run's settlement comes at last, and that must do nothing (L4, Z4): a settlement that
// acts in spite of it takes away a message that is still to be done (a late ack) or makes a second one of it (a late
// release).
func Decide(seed uint64, seq int64, run int) Act {
	if run >= sound {
		return Work
	}
	if first := draw(seed, seq, 1); run > 1 && run <= failsBehind && first.overruns() {
		return Fail
	}
	act := draw(seed, seq, run)
	if run > 1 && act.overruns() {
		return Work
	}
	return act
}

func (a Act) overruns() bool { return a == Overrun || a == OverrunFail }

func draw(seed uint64, seq int64, run int) Act {
	left := mix(seed^mix(uint64(seq)<<8^uint64(run))) % wholeParts
	for _, o := range odds {
		if left < o.parts {
			return o.act
		}
		left -= o.parts
	}
	return Work
}

// mix is the finalizer of splitmix64, which spreads neighbours over all 64 bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
