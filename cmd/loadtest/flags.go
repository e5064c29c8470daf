package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/pool"
)

const (
	envRedis  = "BQ_REDIS_URL"
	miniRedis = "miniredis" // the value of -redis that asks for it

	defaultMessages    = 20_000
	defaultConcurrency = 64
	defaultPayload     = 300
	defaultRetryAfter  = 90 * time.Second
	prefetchPerWorker  = 4

	leastRetryAfter = 2 * time.Second // L5
	mostMessages    = 1_000_000_000   // 12 bytes of books each
	mostHeld        = 1_000_000       // a channel has a place for each
	mostPayload     = 256 << 20       // Redis takes 512 MiB in one piece; a script holds it more than once
)

// config is what the flags say, checked.
type config struct {
	redis       string // URL, "miniredis", or "" for the embedded choice
	redisFlag   string // where redis came from, for errors
	layout      pool.Layout
	messages    int64         // 0 when duration is set
	duration    time.Duration // 0 when messages is set
	rate        float64       // per second, 0 = as fast as possible
	concurrency int
	prefetch    int
	payload     int // bytes of the envelope
	handlerTime time.Duration
	fail        float64 // probability
	backoff     time.Duration
	retryAfter  time.Duration
	legacyRetry pool.LegacyRetry
	maxAttempts int64
	prefill     bool
	json        string // file, "-" or ""
}

// rawFlags are the flags whose text is interpreted after parsing, so that all problems are reported at once.
type rawFlags struct {
	layout, legacyRetry string
}

func newFlagSet(c *config, raw *rawFlags) *flag.FlagSet {
	fs := flag.NewFlagSet("loadtest", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are returned, and printed once
	fs.StringVar(&c.redis, "redis", "", "`URL|miniredis` server to use; else "+envRedis+", else a private redis-server from PATH, "+
		"else miniredis in this process")
	fs.StringVar(&raw.layout, "layout", "legacy", "`legacy|zset` how the queue lies in Redis")
	fs.Int64Var(&c.messages, "messages", defaultMessages, "`N` how many messages to publish")
	duration(fs, &c.duration, "duration", 0, "`D` how long to publish, instead of how many")
	fs.Float64Var(&c.rate, "rate", 0, "`N` messages per second, each sent at its own time; 0 = as fast as possible")
	fs.BoolVar(&c.prefill, "prefill", false, "publish everything first, then time the consumption")
	fs.IntVar(&c.payload, "payload", defaultPayload, "`BYTES` size of each envelope")
	fs.IntVar(&c.concurrency, "concurrency", defaultConcurrency, "`N` workers")
	fs.IntVar(&c.prefetch, "prefetch", 0, "`N` most messages held at a time; 0 = 4 times concurrency")
	duration(fs, &c.handlerTime, "handler-time", 0, "`D` how long each handler takes")
	fs.Float64Var(&c.fail, "fail", 0, "`P` probability, from 0 to 1, that a handler fails")
	duration(fs, &c.retryAfter, "retry-after", defaultRetryAfter, "`D` the lease: what is not settled comes back after it; whole "+
		"seconds")
	duration(fs, &c.backoff, "backoff", 0, "`D` zset: how long a failed message waits; 0 = it is left to its lease")
	fs.StringVar(&raw.legacyRetry, "legacy-retry", "leave", "`leave|requeue` legacy: a failed message is left to its lease, or goes "+
		"to the tail at once")
	fs.Int64Var(&c.maxAttempts, "max-attempts", 0, "`N` dead-letter a message that failed so often; 0 = never")
	fs.StringVar(&c.json, "json", "", "`FILE|-` write the report as JSON too; with - everything else goes to stderr")
	return fs
}

// parseFlags reads the command line. Its error names every flag at fault; it is flag.ErrHelp for -h.
func parseFlags(args []string, getenv func(string) string) (config, error) {
	var c config
	var raw rawFlags
	fs := newFlagSet(&c, &raw)
	if err := fs.Parse(args); err != nil {
		return config{}, err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })

	var problems []error
	fail := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if fs.NArg() > 0 {
		fail("unexpected argument %q: everything is said by flags", fs.Arg(0))
	}
	c.redisFlag = "-redis"
	if c.redis == "" && !given["redis"] {
		c.redis, c.redisFlag = getenv(envRedis), envRedis
	}
	if c.redis != "" && c.redis != miniRedis {
		// The parser's own error repeats the URL, which may hold a password.
		if _, err := redis.ParseURL(c.redis); err != nil {
			fail("%s: is neither %s nor a valid URL such as redis://user:password@host:6379/0", c.redisFlag, miniRedis)
		}
	}
	switch raw.layout {
	case "legacy":
		c.layout = pool.Legacy
	case "zset":
		c.layout = pool.Zset
	default:
		fail("-layout: %q is neither legacy nor zset", raw.layout)
	}
	switch raw.legacyRetry {
	case "leave":
		c.legacyRetry = pool.Leave
	case "requeue":
		c.legacyRetry = pool.Requeue
	default:
		fail("-legacy-retry: %q is neither leave nor requeue", raw.legacyRetry)
	}
	c.checkVolume(given, fail)
	c.checkSizes(given, fail)
	c.checkRetries(fail)
	return c, errors.Join(problems...)
}

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

func (c *config) checkSizes(given map[string]bool, fail func(string, ...any)) {
	if c.concurrency < 1 || c.concurrency > mostHeld {
		fail("-concurrency: %d is not from 1 to %d", c.concurrency, mostHeld)
	}
	if !given["prefetch"] || c.prefetch == 0 {
		c.prefetch = max(1, min(prefetchPerWorker*c.concurrency, mostHeld))
	}
	switch {
	case c.prefetch < 0 || c.prefetch > mostHeld:
		fail("-prefetch: %d is not from 1 to %d", c.prefetch, mostHeld)
	case c.prefetch < min(c.concurrency, mostHeld):
		fail("-prefetch: %d is less than -concurrency, %d: some workers would never have work", c.prefetch, c.concurrency)
	}
	if c.payload < 1 || c.payload > mostPayload {
		fail("-payload: %d is not from 1 to %d bytes", c.payload, mostPayload)
	}
}

func (c *config) checkRetries(fail func(string, ...any)) {
	if c.handlerTime < 0 {
		fail("-handler-time: %s is negative", c.handlerTime)
	}
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
