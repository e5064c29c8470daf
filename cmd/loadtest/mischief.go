package main

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/chaos"
	"github.com/babelpool/babelpool/internal/retry"
	"github.com/babelpool/babelpool/pool"
)

// clockBehind is how far the clock of some consumers is behind the server's. Their leases end that much earlier than
// they believe. A clock that is ahead would end everybody else's leases early, as a reserve sweeps, and so make every
// message's evidence worthless.
const clockBehind = time.Second

// beyondLease is how long a handler goes on after its lease. The message is then surely reserved again, and as a rule
// has failed again and is still waiting.
const beyondLease = 150 * time.Millisecond

// plantedHook is set by tests alone, to see that a broken consumer is found out.
var plantedHook redis.Hook

// mischief is what a consumer process does wrong.
type mischief struct {
	chaosOrder
	lease  time.Duration // in whole seconds
	layout pool.Layout
	books  *books
}

// join makes the worker do what the order says; nil orders nothing.
func (k *worker) join(o *chaosOrder, client *redis.Client) {
	if o == nil {
		return
	}
	lease := (k.cfg.retryAfter + time.Second - 1).Truncate(time.Second)
	k.mischief = &mischief{chaosOrder: *o, lease: lease, layout: k.cfg.layout, books: k.books}
	if o.Behind > 0 {
		client.AddHook(newScriptHook(wrongClock{o.Behind, &k.books.faults, &sync.Map{}}))
	}
	if plantedHook != nil {
		client.AddHook(plantedHook)
	}
}

// change makes the pool that of a consumer with faults. Nobody wants to read its log: it is about what was done to it.
func (m *mischief) change(cfg *pool.Config) {
	cfg.Logger = slog.New(slog.DiscardHandler)
	if !m.Renews {
		cfg.DisableLeaseRenewal, cfg.HandlerTimeout = true, m.lease-time.Second
	}
}

// of does what a message's handler does wrong in this run. When it returns nil the handler goes on.
func (m *mischief) of(seq int64, run int, number int64) error {
	if m.layout == pool.Zset { // in the legacy layout a redelivery has the number of the delivery before
		m.books.delivered(seq, number)
	}
	if !m.Renews {
		m.books.entry(seq).add(unrenewed)
	}
	if m.Behind > 0 {
		m.books.entry(seq).add(misjudged)
	}
	act := chaos.Decide(m.Seed, seq, run)
	switch act {
	case chaos.Fail:
		m.books.faults.Add(chaos.HandlerFail)
		return errInjected
	case chaos.Panic:
		m.books.faults.Add(chaos.HandlerPanic)
		panic(errInjected)
	case chaos.Exit:
		m.books.faults.Add(chaos.HandlerExit)
		runtime.Goexit()
	case chaos.Overrun, chaos.OverrunFail:
		_ = retry.Sleep(context.Background(), m.lease+beyondLease) // whatever becomes of the handler's own context
		if !m.Renews {                                             // else it was no longer than its lease
			m.books.faults.Add(chaos.HandlerOverrun)
		}
		if act == chaos.OverrunFail {
			return errInjected
		}
	case chaos.Work:
	}
	return nil
}
