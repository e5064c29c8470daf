package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
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
)

// config is what the flags say, checked.
type config struct {
	redis       string // URL, "miniredis", or "" for the embedded choice
	redisFlag   string // where redis came from, for errors
	layout      pool.Layout
	messages    int64         // 0 when duration is set
	duration    time.Duration // 0 when messages is set
	rate        float64       // per second, 0 = as fast as possible
	concurrency int           // of each process; of a sweep's run while it goes on
	prefetch    int           // likewise
	batch       int           // likewise; 0 = the pool's default
	processes   int           // that consume
	payload     int           // bytes of the envelope
	handlerTime handlerTime
	fail        float64 // probability
	backoff     time.Duration
	retryAfter  time.Duration
	legacyRetry pool.LegacyRetry
	maxAttempts int64
	prefill     bool
	sweep       *sweepPlan // nil unless this is a sweep
	chaos       *chaosPlan // nil unless this is a run with faults
	json        string     // file, "-" or ""
	html        string     // file or ""
}

// rawFlags are the flags whose text is interpreted after parsing, so that all problems are reported at once.
type rawFlags struct {
	layout, legacyRetry          string
	concurrency, prefetch, batch intList
	sweep, chaos                 bool
	runs                         int
	seed                         uint64
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
	raw.concurrency, raw.prefetch, raw.batch = intList{defaultConcurrency}, intList{0}, intList{0}
	fs.IntVar(&c.processes, "processes", 1, "`N` processes that consume the queue, each with a pool of its own; this one publishes")
	fs.Var(&raw.concurrency, "concurrency", "`N` workers of each process; a list such as 16,64,256 with -sweep")
	fs.Var(&raw.prefetch, "prefetch", "`N` most messages that each process holds at a time; 0 = 4 times concurrency; a list with -sweep")
	fs.Var(&raw.batch, "batch", "`N` most messages that one call to Redis reserves or settles, up to 1000; 0 = the pool's default; "+
		"a list with -sweep")
	fs.Var(&c.handlerTime, "handler-time", "`D|exponential:D` how long each handler takes: always D, or a time of its own for each "+
		"message with D as the mean and 20 times that as the most")
	fs.Float64Var(&c.fail, "fail", 0, "`P` probability, from 0 to 1, that a handler fails")
	duration(fs, &c.retryAfter, "retry-after", defaultRetryAfter, "`D` the lease: what is not settled comes back after it; whole "+
		"seconds")
	duration(fs, &c.backoff, "backoff", 0, "`D` zset: how long a failed message waits; 0 = it is left to its lease")
	fs.StringVar(&raw.legacyRetry, "legacy-retry", "leave", "`leave|requeue` legacy: a failed message is left to its lease, or goes "+
		"to the tail at once")
	fs.Int64Var(&c.maxAttempts, "max-attempts", 0, "`N` dead-letter a message that failed so often; 0 = never")
	fs.BoolVar(&raw.sweep, "sweep", false, "measure every combination of the lists of -concurrency, -prefetch and -batch, each in a "+
		"prefilled run, and compare them")
	fs.IntVar(&raw.runs, "runs", 1, "`N` with -sweep: runs of each combination; their medians are compared")
	fs.BoolVar(&raw.chaos, "chaos", false, "a run with faults, on a server of its own: servers and consumers are killed, replies get "+
		"lost, handlers fail; then everything must come right. Sets defaults of its own: 3 processes, 30s at 2000 messages per "+
		"second, -retry-after 2s, zset: -backoff 1s")
	fs.Uint64Var(&raw.seed, "seed", 0, "`N` with -chaos: repeats the faults and the handlers' decisions of the run that named it; "+
		"0 = a new one")
	fs.StringVar(&c.html, "html", "", "`FILE` write a page with charts too")
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
	if c.redis == "" && !given["redis"] && !raw.chaos {
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
	c.checkChaos(&raw, given, fail)
	c.checkVolume(given, fail)
	c.checkSizes(&raw, fail)
	c.checkSweep(&raw, given, fail)
	c.checkRetries(fail)
	c.checkProcesses(fail)
	if c.html != "" && c.html == c.json {
		fail("-html: %q is the file of -json", c.html)
	}
	return c, errors.Join(problems...)
}
