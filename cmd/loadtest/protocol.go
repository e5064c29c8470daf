package main

import (
	"time"

	"github.com/babelpool/babelpool/pool"
)

// envMember makes this program a consumer process of another one's run. It is of no use to people.
const envMember = "BQ_LOADTEST_CONSUMER"

// sharedFD is where a consumer process finds the shared memory.
const sharedFD = 3

// order is what a consumer process is to do: the first value on its stdin.
type order struct {
	Number, Of int // which process it is, from 1
	Address    string
	Queue      string
	RunID      string

	Layout      pool.Layout
	Concurrency int
	Prefetch    int
	Batch       int
	HandlerTime string
	Fail        float64
	Backoff     time.Duration
	RetryAfter  time.Duration
	LegacyRetry pool.LegacyRetry
	MaxAttempts int64

	Chaos *chaosOrder // nil without faults
}

// chaosOrder is what a consumer process does wrong.
type chaosOrder struct {
	Seed   uint64        // of its handlers' decisions
	Renews bool          // its leases
	Behind time.Duration // how far its clock is
}

// order is that of a trial's consumer processes.
func (t *trial) order() order {
	c := &t.cfg
	o := order{
		Of: c.processes, Address: t.srv.address, Queue: t.queue, RunID: t.runID, Layout: c.layout, Concurrency: c.concurrency,
		Prefetch: c.prefetch, Batch: c.batch, HandlerTime: c.handlerTime.String(), Fail: c.fail, Backoff: c.backoff,
		RetryAfter: c.retryAfter, LegacyRetry: c.legacyRetry, MaxAttempts: c.maxAttempts,
	}
	if c.chaos != nil {
		o.Chaos = &chaosOrder{Seed: c.chaos.seed}
	}
	return o
}

// config is the part of a config that matters to a worker.
func (o *order) config() (config, error) {
	c := config{
		layout: o.Layout, concurrency: o.Concurrency, prefetch: o.Prefetch, batch: o.Batch, fail: o.Fail,
		backoff: o.Backoff, retryAfter: o.RetryAfter, legacyRetry: o.LegacyRetry, maxAttempts: o.MaxAttempts,
	}
	return c, c.handlerTime.Set(o.HandlerTime)
}

// command is what follows on stdin. The end of stdin before the final news means that the run's own process is
// gone: then this one ends at once.
type command struct {
	Go   bool // consume
	Stop bool // drain
}

// news is what a consumer process tells, when something has changed.
type news struct {
	Ready     bool
	Counts    counts
	CPU       time.Duration // used since it was told to go, when the counts last changed
	CPUKnown  bool
	Histogram []byte // of the latencies so far; nil = as before
	Final     bool
	Err       string // of its pool, in the final news
}
