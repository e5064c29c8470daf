package chaos

import (
	"math/rand/v2"
	"time"
)

// round is what a schedule shuffles, again and again: every kind is in it, so that none waits for luck, and the cheap
// ones more than once.
var round = []Kind{
	ConsumerKill, ConsumerKill, RedisRestart, ClientKill, ScriptFlush, DebugSleep, LostReply, LostReply, LostReply,
	ProxyCut, ProxyDelay,
}

const (
	usualGap = 700 * time.Millisecond // less would leave consumers no time to work
	leastGap = 50 * time.Millisecond

	// spared is the share of a short run behind its first round, in which a fault that came late may still happen.
	spared = 0.2
)

// Event is a fault of a schedule.
type Event struct {
	At   time.Duration // from the start of the faults
	Kind Kind
	Draw uint64 // says the rest: which consumer, for how long
}

// Schedule is an endless list of faults. It belongs to one goroutine.
type Schedule struct {
	random *rand.Rand
	gap    time.Duration
	left   []Kind // of the round
	number int
}

// NewSchedule makes the schedule of a seed for a run of about this length: long runs have a fault about every 700 ms,
// short ones all kinds once. The gaps depend on the length, the rest on the seed alone.
func NewSchedule(seed uint64, length time.Duration) *Schedule {
	gap := time.Duration((1 - spared) * float64(length) / float64(len(round)))
	return &Schedule{
		random: rand.New(rand.NewPCG(seed, 0)),
		gap:    max(leastGap, min(usualGap, gap)),
	}
}

// Next is the next fault.
func (s *Schedule) Next() Event {
	if len(s.left) == 0 {
		s.left = append(s.left, round...)
		s.random.Shuffle(len(s.left), func(i, j int) { s.left[i], s.left[j] = s.left[j], s.left[i] })
	}
	// Anywhere within its own gap, so that faults come in pairs too.
	e := Event{
		At:   time.Duration((float64(s.number) + s.random.Float64()) * float64(s.gap)),
		Kind: s.left[0], Draw: s.random.Uint64(),
	}
	s.left, s.number = s.left[1:], s.number+1
	return e
}

// spread turns a draw into a duration from one to another.
func spread(draw uint64, from, to time.Duration) time.Duration {
	return from + time.Duration(float64(draw>>11)/(1<<53)*float64(to-from))
}
