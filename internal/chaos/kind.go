package chaos

import "sync/atomic"

// Kind is a kind of fault.
type Kind int

// The kinds. Those up to ProxyDelay are scheduled; the others happen in consumers, as messages come.
const (
	ConsumerKill Kind = iota // SIGKILL of a consumer, which is started again
	RedisRestart             // SIGKILL of the server, which is started again on its data
	ClientKill               // CLIENT KILL of all connections
	ScriptFlush              // SCRIPT FLUSH
	DebugSleep               // DEBUG SLEEP: the server answers nobody
	LostReply                // a command is carried out and its reply lost
	ProxyCut                 // all connections closed on the way
	ProxyDelay               // replies come late for a while

	HandlerFail    // the handler returns an error
	HandlerPanic   // it panics
	HandlerExit    // it calls runtime.Goexit
	HandlerOverrun // it takes no notice of its context and works on beyond the lease
	ClockSkew      // a script runs with the clock of a consumer whose clock is wrong

	kinds
)

var names = [kinds]string{
	"consumer_kill", "redis_restart", "client_kill", "script_flush", "debug_sleep", "lost_reply", "proxy_cut",
	"proxy_delay", "handler_fail", "handler_panic", "handler_exit", "handler_overrun", "clock_skew",
}

// String is the kind's name in reports.
func (k Kind) String() string { return names[k] }

// Kinds are all kinds, in the order of their constants.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Stalls reports whether a fault of this kind can keep consumers from the server for so long that whatever they hold
// comes back: their leases run out, or the replies to their settlements are lost.
func (k Kind) Stalls() bool {
	switch k {
	case RedisRestart, ClientKill, DebugSleep, LostReply, ProxyCut, ProxyDelay:
		return true
	default:
		return false
	}
}

// Counters count faults by kind. The zero value is ready; it holds no pointers, so that it can lie in memory that
// several processes share.
type Counters [kinds]atomic.Int64

// Add counts one fault.
func (c *Counters) Add(k Kind) { c[k].Add(1) }

// Of is how many there were.
func (c *Counters) Of(k Kind) int64 { return c[k].Load() }
