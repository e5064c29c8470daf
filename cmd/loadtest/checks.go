package main

import (
	"math"
	"time"

	"github.com/babelpool/babelpool/pool"
)

const (
	prefetchPerWorker = 4

	leastRetryAfter = 2 * time.Second // L5
	mostMessages    = 1_000_000_000   // 12 bytes of books each
	mostHeld        = 1_000_000       // a channel has a place for each
	mostBatch       = 1000            // of pool.Config
	mostPayload     = 256 << 20       // Redis takes 512 MiB in one piece; a script holds it more than once
	mostProcesses   = 256
	mostRuns        = 1000
)

func (c *config) checkVolume(given map[string]bool, fail func(string, ...any)) {
	if given["messages"] && given["duration"] {
		fail("-duration: says how long to publish, and -messages how many; give one of them")
	}
	if c.messages < 1 || c.messages > mostMessages {
		fail("-messages: %d is not from 1 to %d", c.messages, mostMessages)
	}
	if given["duration"] {
		c.messages = 0
		if c.duration <= 0 {
			fail("-duration: %s is not above zero", c.duration)
		}
	}
	if !(c.rate >= 0) || math.IsInf(c.rate, 1) {
		fail("-rate: %v is not a number of messages per second, or 0 for as fast as possible", c.rate)
	}
}

func (c *config) checkSizes(raw *rawFlags, fail func(string, ...any)) {
	if !raw.sweep {
		one := func(name string, list intList) int {
			if len(list) > 1 {
				fail("-%s: the list %s needs -sweep", name, list)
			}
			return list[0]
		}
		c.concurrency, c.prefetch = one("concurrency", raw.concurrency), one("prefetch", raw.prefetch)
		c.batch = one("batch", raw.batch)
		if c.prefetch == 0 {
			c.prefetch = defaultPrefetch(c.concurrency)
		}
	}
	for _, n := range raw.concurrency {
		if n < 1 || n > mostHeld {
			fail("-concurrency: %d is not from 1 to %d", n, mostHeld)
		}
	}
	for _, n := range raw.prefetch {
		if n < 0 || n > mostHeld {
			fail("-prefetch: %d is not from 1 to %d", n, mostHeld)
		}
	}
	for _, n := range raw.batch {
		if n < 0 || n > mostBatch {
			fail("-batch: %d is not from 0 to %d", n, mostBatch)
		}
	}
	if !raw.sweep && c.prefetch >= 0 && c.prefetch < min(c.concurrency, mostHeld) {
		fail("-prefetch: %d is less than -concurrency, %d: some workers would never have work", c.prefetch, c.concurrency)
	}
	if c.payload < 1 || c.payload > mostPayload {
		fail("-payload: %d is not from 1 to %d bytes", c.payload, mostPayload)
	}
}

// defaultPrefetch is the prefetch of so many workers when none is given.
func defaultPrefetch(concurrency int) int {
	return max(1, min(prefetchPerWorker*min(concurrency, mostHeld), mostHeld))
}

// checkSweep makes the plan of a sweep.
func (c *config) checkSweep(raw *rawFlags, given map[string]bool, fail func(string, ...any)) {
	if !raw.sweep {
		if given["runs"] {
			fail("-runs: %d runs of each combination need -sweep", raw.runs)
		}
		return
	}
	// A backlog of the same size is what makes the runs comparable.
	for _, name := range []string{"rate", "duration"} {
		if given[name] {
			fail("-%s: does not go with -sweep, whose runs are prefilled and of one size; see -messages", name)
		}
	}
	if raw.runs < 1 || raw.runs > mostRuns {
		fail("-runs: %d is not from 1 to %d", raw.runs, mostRuns)
	}
	for name, list := range map[string]intList{"concurrency": raw.concurrency, "prefetch": raw.prefetch, "batch": raw.batch} {
		if n, twice := list.twice(); twice {
			fail("-%s: %d stands twice in %s", name, n, list)
		}
	}
	c.sweep, c.prefill = newSweepPlan(raw.concurrency, raw.prefetch, raw.batch, raw.runs), true
	if len(c.sweep.combinations) == 0 {
		fail("-prefetch: every combination holds fewer messages than it has workers: %s", joined(c.sweep.skipped))
	}
}

func (c *config) checkProcesses(fail func(string, ...any)) {
	switch {
	case c.processes < 1 || c.processes > mostProcesses:
		fail("-processes: %d is not from 1 to %d", c.processes, mostProcesses)
	case c.processes > 1 && !canShareMemory:
		fail("-processes: %d processes need memory that they share, which this program has on Unix only", c.processes)
	case c.processes > 1 && c.redis == miniRedis:
		fail("-processes: %d processes need a real Redis; miniredis lives inside this process, and they would only wait for it", c.processes)
	}
}

func (c *config) checkRetries(fail func(string, ...any)) {
	if c.backoff < 0 {
		fail("-backoff: %s is negative", c.backoff)
	}
	if c.retryAfter <= leastRetryAfter-time.Second { // it is rounded up to whole seconds (L5)
		fail("-retry-after: %s is less than %s", c.retryAfter, leastRetryAfter)
	}
	if !(c.fail >= 0 && c.fail <= 1) {
		fail("-fail: %v is no probability from 0 to 1", c.fail)
	}
	if c.maxAttempts < 0 {
		fail("-max-attempts: %d is negative", c.maxAttempts)
	}
	requeues := c.legacyRetry == pool.Requeue
	switch {
	case c.layout == pool.Legacy && requeues && c.maxAttempts == 0:
		fail("-legacy-retry: requeue needs -max-attempts, or a message that always fails goes round for ever")
	case c.layout == pool.Legacy && !requeues && c.maxAttempts > 0:
		fail("-max-attempts: the legacy layout counts attempts only with -legacy-retry requeue")
	case c.fail == 1 && c.maxAttempts == 0:
		fail("-fail: with 1 and without -max-attempts no message would ever be done")
	}
}

// notes are what the flags say in vain.
func (c *config) notes() []string {
	var notes []string
	if c.layout == pool.Legacy && c.backoff > 0 {
		notes = append(notes, "-backoff has no effect in the legacy layout, which has no delayed messages; see -retry-after")
	}
	if c.layout == pool.Zset && c.legacyRetry == pool.Requeue {
		notes = append(notes, "-legacy-retry has no effect in the zset layout; see -backoff")
	}
	return notes
}
