package pool

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
	"github.com/babelpool/babelpool/router"
)

const (
	defaultRetryAfter       = 90 * time.Second
	defaultInFlightBytes    = 64 << 20
	defaultHandlerTimeout   = 10 * time.Minute
	defaultDrainTimeout     = 30 * time.Second
	defaultHardStopTimeout  = 5 * time.Second
	defaultPollInterval     = time.Second
	defaultLivenessLimit    = time.Minute
	defaultReadinessLimit   = 30 * time.Second
	defaultUnknownURNDelay  = time.Second
	defaultUnknownURNMaxAge = time.Hour
	leastConcurrency        = 16
	prefetchPerWorker       = 4
	leastRetryAfter         = 2 * time.Second
	mostWeight              = 100
	sparePoolSize           = 4 // connections beside the one each queue blocks on
)

// plan is a Config with its defaults filled in and its keys derived.
type plan struct {
	Config
	keys []lua.Keys // by queue
}

// newPlan fills in the defaults and checks everything that can be checked without Redis. All problems are
// joined; each names its field.
func newPlan(cfg Config) (*plan, error) {
	p := &plan{Config: cfg}
	p.fillIn()
	problems := []error{p.checkClient(), p.checkSizes(), p.checkLeases(), p.checkRetries(), p.checkLosses(), p.checkQueues()}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("%w:\n%w", ErrConfig, err)
	}
	return p, nil
}

func orElse[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func (p *plan) fillIn() {
	p.Layout = orElse(p.Layout, Legacy)
	p.Concurrency = orElse(p.Concurrency, max(leastConcurrency, 4*runtime.GOMAXPROCS(0)))
	p.Prefetch = orElse(p.Prefetch, max(prefetchPerWorker*p.Concurrency, len(p.Queues)))
	p.MaxInFlightBytes = orElse(p.MaxInFlightBytes, int64(defaultInFlightBytes))
	if !p.RetryAfterDisabled {
		p.RetryAfter = wholeSeconds(orElse(p.RetryAfter, defaultRetryAfter))
	}
	p.HandlerTimeout = orElse(p.HandlerTimeout, defaultHandlerTimeout)
	p.DrainTimeout = orElse(p.DrainTimeout, defaultDrainTimeout)
	p.HardStopTimeout = orElse(p.HardStopTimeout, defaultHardStopTimeout)
	p.PollInterval = orElse(p.PollInterval, defaultPollInterval)
	p.LivenessLimit = orElse(p.LivenessLimit, defaultLivenessLimit)
	p.ReadinessLimit = orElse(p.ReadinessLimit, defaultReadinessLimit)
	p.UnknownURNDelay = orElse(p.UnknownURNDelay, defaultUnknownURNDelay)
	p.UnknownURNMaxAge = orElse(p.UnknownURNMaxAge, defaultUnknownURNMaxAge)
	p.Logger = orElse(p.Logger, slog.Default())
	queues := make([]Queue, len(p.Queues))
	for i, q := range p.Queues {
		q.Layout = orElse(q.Layout, p.Layout)
		q.Weight = orElse(q.Weight, 1)
		q.RetryAfter = wholeSeconds(orElse(q.RetryAfter, p.RetryAfter))
		if q.Handler == nil {
			q.Handler = p.Handler
		}
		queues[i] = q
	}
	p.Queues = queues
}

// wholeSeconds rounds a lease up (L5).
func wholeSeconds(d time.Duration) time.Duration {
	if whole := d.Truncate(time.Second); whole != d {
		return whole + time.Second
	}
	return d
}

func (p *plan) checkClient() error {
	missing := errors.New("Client: is required")
	switch c := p.Client.(type) {
	case nil:
		return missing
	case *redis.Ring:
		return errors.New("Client: a *redis.Ring spreads the keys of one queue over servers that share no script; " +
			"use a *redis.ClusterClient and hash-tagged queue names, or one *redis.Client per server")
	case *redis.Client:
		if c == nil { // what OpenRedis returns beside an error
			return missing
		}
		return p.checkPoolSize(c.Options().PoolSize)
	case *redis.ClusterClient:
		if c == nil {
			return missing
		}
		return p.checkPoolSize(c.Options().PoolSize)
	}
	return nil
}

// checkPoolSize makes sure that the connections blocked on empty queues leave some for the rest (B17).
func (p *plan) checkPoolSize(size int) error {
	if need := len(p.Queues) + sparePoolSize; size > 0 && size < need {
		return fmt.Errorf("Client: its PoolSize is %d; %d queues need at least %d", size, len(p.Queues), need)
	}
	return nil
}

func (p *plan) checkSizes() error {
	var problems []error
	fail := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if p.Concurrency < 0 {
		fail("Concurrency: %d is negative", p.Concurrency)
	}
	if p.Prefetch < p.Concurrency {
		fail("Prefetch: %d is less than Concurrency, %d", p.Prefetch, p.Concurrency)
	}
	if p.Prefetch < len(p.Queues) {
		fail("Prefetch: %d is less than the number of queues, %d", p.Prefetch, len(p.Queues))
	}
	if p.MaxInFlightBytes < 0 {
		fail("MaxInFlightBytes: %d is negative", p.MaxInFlightBytes)
	}
	if p.Batch < 0 || p.Batch > mostBatch {
		fail("Batch: %d is not from 0 to %d", p.Batch, mostBatch)
	}
	if p.MigrationBatch < 0 {
		fail("MigrationBatch: %d is negative", p.MigrationBatch)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"DrainTimeout", p.DrainTimeout}, {"HardStopTimeout", p.HardStopTimeout}, {"PollInterval", p.PollInterval},
		{"LivenessLimit", p.LivenessLimit}, {"ReadinessLimit", p.ReadinessLimit},
		{"UnknownURNDelay", p.UnknownURNDelay}, {"UnknownURNMaxAge", p.UnknownURNMaxAge},
	} {
		if d.value < 0 {
			fail("%s: %s is negative", d.name, d.value)
		}
	}
	return errors.Join(problems...)
}

func (p *plan) checkLeases() error {
	var problems []error
	fail := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if p.RetryAfterDisabled && p.RetryAfter != 0 {
		fail("RetryAfter: %s is set, and RetryAfterDisabled too", p.RetryAfter)
		return errors.Join(problems...) // the queues have it from there
	}
	for i, q := range p.Queues {
		if p.RetryAfterDisabled && q.RetryAfter == 0 {
			continue
		}
		if q.RetryAfter < leastRetryAfter {
			fail("Queues[%d].RetryAfter: %s of queue %q is less than %s (L5)", i, q.RetryAfter, q.Name, leastRetryAfter)
			continue
		}
		if limit := q.RetryAfter - time.Second; p.DisableLeaseRenewal && (p.HandlerTimeout < 0 || p.HandlerTimeout > limit) {
			fail("HandlerTimeout: %s is longer than the lease of queue %q without renewal allows, %s; set it, or a longer "+
				"RetryAfter, or renew leases", p.HandlerTimeout, q.Name, limit)
		}
	}
	return errors.Join(problems...)
}

func (p *plan) checkRetries() error {
	var problems []error
	fail := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if err := p.delay().Validate(); err != nil {
		problems = append(problems, err)
	}
	if p.MaxAttempts < 0 {
		fail("MaxAttempts: %d is negative", p.MaxAttempts)
	}
	switch {
	case p.LegacyRetry > Requeue:
		fail("LegacyRetry: %d is neither Leave nor Requeue", p.LegacyRetry)
	case p.LegacyRetry == Requeue && p.MaxAttempts == 0:
		fail("LegacyRetry: Requeue needs MaxAttempts, or a failing message goes round for ever (L6)")
	case p.LegacyRetry == Leave && p.MaxAttempts > 0:
		for _, q := range p.Queues {
			if q.Layout == Legacy {
				fail("MaxAttempts: legacy queue %q counts no attempts with LegacyRetry: Leave; set Requeue (A1)", q.Name)
				break
			}
		}
	}
	if p.UnknownURN > UnknownFail {
		fail("UnknownURN: %d is no strategy", p.UnknownURN)
	}
	if p.Poison > BadLeave {
		fail("Poison: %d is no strategy", p.Poison)
	}
	if p.ForeignJobs > BadLeave {
		fail("ForeignJobs: %d is no strategy", p.ForeignJobs)
	}
	return errors.Join(problems...)
}

func (p *plan) checkQueues() error {
	if len(p.Queues) == 0 {
		return errors.New("Queues: at least one is required")
	}
	var problems []error
	fail := func(i int, format string, args ...any) {
		problems = append(problems, fmt.Errorf("Queues[%d]."+format, append([]any{i}, args...)...))
	}
	_, cluster := p.Client.(*redis.ClusterClient)
	first, overridden := map[string]int{}, make([]bool, len(p.Queues))
	p.keys = make([]lua.Keys, len(p.Queues))
	for i, q := range p.Queues {
		if q.Layout != Legacy && q.Layout != Zset {
			fail(i, "Layout: %d is neither Legacy nor Zset", q.Layout)
			continue
		}
		if q.Weight < 1 || q.Weight > mostWeight {
			fail(i, "Weight: %d is not from 1 to %d", q.Weight, mostWeight)
		}
		if q.Handler == nil {
			fail(i, "Handler: queue %q has none, and Config.Handler is nil", q.Name)
		}
		keys, err := lua.NewKeys(q.Layout, p.KeyPrefix, q.Name, q.DeadLetterKey)
		if err != nil {
			fail(i, "Name, KeyPrefix or DeadLetterKey: %w", err)
			continue
		}
		if j, ok := first[keys.Ready]; ok {
			fail(i, "Name: %q is Queues[%d] already", q.Name, j)
		}
		first[keys.Ready] = i
		if cluster {
			if err := keys.CheckSlot(q.Name); err != nil {
				fail(i, "Name: %w", err)
			}
		}
		p.keys[i], overridden[i] = keys, q.DeadLetterKey != ""
	}
	if err := lua.CheckApart(p.keys, overridden); err != nil {
		problems = append(problems, fmt.Errorf("Queues: DeadLetterKey: %w", err))
	}
	return errors.Join(problems...)
}

// delay is the failure delay of zset queues.
func (p *plan) delay() router.Delay {
	return router.Delay{Fixed: p.FailureDelay, Policy: p.BackoffPolicy, Backoff: p.Backoff}
}

// Policy is what a pool with this config does with its handlers' outcomes, defaults filled in: what package routertest
// takes to try handlers without Redis. The error names the fields at fault; those that are not about outcomes are not
// looked at.
func (c Config) Policy() (router.Policy, error) {
	p := &plan{Config: c}
	p.fillIn()
	if err := p.checkRetries(); err != nil {
		return router.Policy{}, fmt.Errorf("%w:\n%w", ErrConfig, err)
	}
	return p.policy(), nil
}

// policy is how the router treats outcomes.
func (p *plan) policy() router.Policy {
	return router.Policy{
		MaxAttempts: p.MaxAttempts, MaxRecoveries: p.MaxRecoveries, LegacyRetry: p.LegacyRetry, Delay: p.delay(),
		UnknownURN: p.UnknownURN, UnknownURNDelay: p.UnknownURNDelay, UnknownURNMaxAge: p.UnknownURNMaxAge,
		Poison: p.Poison, ForeignJobs: p.ForeignJobs, HandlerTimeout: max(p.HandlerTimeout, 0),
		OnError: p.OnError, OnUnknownURN: p.OnUnknownURN,
	}
}

// warn logs what is allowed but rarely meant.
func (p *plan) warn() {
	layouts := map[flow.Layout]bool{}
	for _, q := range p.Queues {
		layouts[q.Layout] = true
	}
	if p.HandlerTimeout < 0 {
		p.Logger.Warn("HandlerTimeout is off: a handler that hangs holds its worker and its message for ever")
	}
	if p.RetryAfterDisabled {
		p.Logger.Warn("RetryAfterDisabled: what a dead process held stays in flight for ever (L5)")
		if layouts[Legacy] && p.LegacyRetry == Leave {
			p.Logger.Warn("RetryAfterDisabled with LegacyRetry Leave: a failed message stays in flight for ever (L6)")
		}
	}
	if layouts[Legacy] && p.delay().Set() {
		p.Logger.Warn("FailureDelay, BackoffPolicy and Backoff have no effect in legacy queues (L6)")
	}
	if p.DeadLetterLimits == (DeadLetterLimits{}) {
		p.Logger.Info("dead letters grow without limit; DeadLetterLimits would bound their count, age or bytes (B42)")
	}
	switch c := p.Client.(type) {
	case *redis.Client:
		o := c.Options()
		p.warnOfTimeouts(o.ContextTimeoutEnabled, o.ReadTimeout, o.ConnMaxIdleTime)
	case *redis.ClusterClient:
		o := c.Options()
		p.warnOfTimeouts(o.ContextTimeoutEnabled, o.ReadTimeout, o.ConnMaxIdleTime)
	}
}

// mostMaxIdle is the longest idle time with which a pool outlives a silent network within 10 s: a call that ends
// by its timeout, 5 s, must find the other connections older than this.
const mostMaxIdle = 5 * time.Second

// warnOfTimeouts logs what makes dead connections go unnoticed.
func (p *plan) warnOfTimeouts(deadlines bool, read, idle time.Duration) {
	if !deadlines {
		p.Logger.Warn("the client ignores context deadlines (ContextTimeoutEnabled is off): a dead connection is noticed later")
	}
	if read <= 0 { // the client's options hold 0 for "none", set as -1
		p.Logger.Warn("the client has no ReadTimeout: a dead connection may never be noticed")
	}
	if idle <= 0 || idle > mostMaxIdle {
		p.Logger.Warn("the client keeps idle connections for long (ConnMaxIdleTime; 4s with PoolFIFO is good): after a silent network each is tried in vain")
	}
}
