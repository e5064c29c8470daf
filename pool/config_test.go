package pool_test

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/pool"
)

// unconnected is a client that no test connects.
func unconnected(t *testing.T) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func valid(t *testing.T) pool.Config {
	t.Helper()
	return pool.Config{
		Client: unconnected(t), Queues: []pool.Queue{{Name: queue}}, Handler: delivery.HandlerFunc(ackAll),
	}
}

func ptr[T any](v T) *T { return &v }

// mistakes are one row per check: what is wrong, and how the error begins that names it.
var mistakes = map[string]struct {
	change func(*pool.Config)
	want   string
}{
	"no client":          {func(c *pool.Config) { c.Client = nil }, "Client: is required"},
	"nil *redis.Client":  {func(c *pool.Config) { c.Client = (*redis.Client)(nil) }, "Client: is required"},
	"nil *ClusterClient": {func(c *pool.Config) { c.Client, c.Queues[0].Name = (*redis.ClusterClient)(nil), "{orders}" }, "Client: is required"},

	"Concurrency":         {func(c *pool.Config) { c.Concurrency = -1 }, "Concurrency: -1 is negative"},
	"Prefetch":            {func(c *pool.Config) { c.Concurrency, c.Prefetch = 8, 7 }, "Prefetch: 7 is less than Concurrency, 8"},
	"Prefetch by queues":  {func(c *pool.Config) { c.Concurrency, c.Prefetch, c.Queues = 1, 2, three() }, "Prefetch: 2 is less than the number of queues, 3"},
	"MaxInFlightBytes":    {func(c *pool.Config) { c.MaxInFlightBytes = -1 }, "MaxInFlightBytes: -1 is negative"},
	"Batch negative":      {func(c *pool.Config) { c.Batch = -1 }, "Batch: -1 is not from 0 to 1000"},
	"Batch too large":     {func(c *pool.Config) { c.Batch = 1001 }, "Batch: 1001 is not from 0 to 1000"},
	"MigrationBatch":      {func(c *pool.Config) { c.MigrationBatch = -1 }, "MigrationBatch: -1 is negative"},
	"DrainTimeout":        {func(c *pool.Config) { c.DrainTimeout = -1 }, "DrainTimeout: -1ns is negative"},
	"HardStopTimeout":     {func(c *pool.Config) { c.HardStopTimeout = -1 }, "HardStopTimeout: -1ns is negative"},
	"PollInterval":        {func(c *pool.Config) { c.PollInterval = -1 }, "PollInterval: -1ns is negative"},
	"UnknownURNDelay":     {func(c *pool.Config) { c.UnknownURNDelay = -1 }, "UnknownURNDelay: -1ns is negative"},
	"LivenessLimit":       {func(c *pool.Config) { c.LivenessLimit = -1 }, "LivenessLimit: -1ns is negative"},
	"ReadinessLimit":      {func(c *pool.Config) { c.ReadinessLimit = -1 }, "ReadinessLimit: -1ns is negative"},
	"UnknownURNMaxAge":    {func(c *pool.Config) { c.UnknownURNMaxAge = -1 }, "UnknownURNMaxAge: -1ns is negative"},
	"MaxAttempts":         {func(c *pool.Config) { c.MaxAttempts = -1 }, "MaxAttempts: -1 is negative"},
	"UnknownURN":          {func(c *pool.Config) { c.UnknownURN = pool.UnknownFail + 1 }, "UnknownURN: 4 is no strategy"},
	"Poison":              {func(c *pool.Config) { c.Poison = pool.BadLeave + 1 }, "Poison: 2 is no strategy"},
	"ForeignJobs":         {func(c *pool.Config) { c.ForeignJobs = pool.BadLeave + 1 }, "ForeignJobs: 2 is no strategy"},
	"FailureDelay, NaN":   {func(c *pool.Config) { c.FailureDelay = ptr(math.NaN()) }, "FailureDelay: NaN is not a finite number"},
	"FailureDelay, +Inf":  {func(c *pool.Config) { c.FailureDelay = ptr(math.Inf(1)) }, "FailureDelay: +Inf is not a finite number"},
	"FailureDelay, -Inf":  {func(c *pool.Config) { c.FailureDelay = ptr(math.Inf(-1)) }, "FailureDelay: -Inf is not a finite number"},
	"FailureDelay, below": {func(c *pool.Config) { c.FailureDelay = ptr(-0.1) }, "FailureDelay: -0.1 is not a finite number"},
	"Backoff.Base":        {func(c *pool.Config) { c.Backoff.Base = -1 }, "Backoff.Base: -1ns is negative"},
	"Backoff.Multiplier":  {func(c *pool.Config) { c.Backoff.Multiplier = 0.5 }, "Backoff.Multiplier: 0.5 is not a finite number of at least 1"},
	"Backoff.Max":         {func(c *pool.Config) { c.Backoff.Max = -1 }, "Backoff.Max: -1ns is negative"},
	"Backoff.Jitter":      {func(c *pool.Config) { c.Backoff.Jitter = pool.FullJitter + 1 }, "Backoff.Jitter: 2 is neither"},

	"RetryAfter beside RetryAfterDisabled": {func(c *pool.Config) { c.RetryAfterDisabled, c.RetryAfter = true, time.Minute }, "RetryAfter: 1m0s is set, and RetryAfterDisabled too"},
	"RetryAfter":                           {func(c *pool.Config) { c.RetryAfter = time.Second }, "Queues[0].RetryAfter: 1s of queue \"orders\" is less than 2s"},
	"RetryAfter, negative":                 {func(c *pool.Config) { c.RetryAfter = -time.Minute }, "Queues[0].RetryAfter: -1m0s of queue \"orders\" is less than 2s"},
	"RetryAfter of a queue":                {func(c *pool.Config) { c.Queues = three(); c.Queues[2].RetryAfter = time.Second }, "Queues[2].RetryAfter: 1s of queue \"c\" is less than 2s"},
	"RetryAfter of a queue, others have none": {func(c *pool.Config) {
		c.RetryAfterDisabled, c.Queues = true, three()
		c.Queues[1].RetryAfter = time.Second
	}, "Queues[1].RetryAfter: 1s of queue \"b\" is less than 2s"},
	"HandlerTimeout without renewal": {func(c *pool.Config) { c.DisableLeaseRenewal = true }, "HandlerTimeout: 10m0s is longer than the lease of queue \"orders\" without renewal allows, 1m29s"},
	"no HandlerTimeout, no renewal":  {func(c *pool.Config) { c.DisableLeaseRenewal, c.HandlerTimeout = true, -1 }, "HandlerTimeout: -1ns is longer than the lease"},

	"LegacyRetry":                 {func(c *pool.Config) { c.LegacyRetry = pool.Requeue + 1 }, "LegacyRetry: 2 is neither Leave nor Requeue"},
	"Requeue without MaxAttempts": {func(c *pool.Config) { c.LegacyRetry = pool.Requeue }, "LegacyRetry: Requeue needs MaxAttempts"},
	"Leave with MaxAttempts":      {func(c *pool.Config) { c.MaxAttempts = 3 }, "MaxAttempts: legacy queue \"orders\" counts no attempts with LegacyRetry: Leave"},
	"Leave, one queue is not zset": {func(c *pool.Config) {
		c.MaxAttempts, c.Layout, c.Queues = 3, pool.Zset, three()
		c.Queues[1].Layout = pool.Legacy
	}, "MaxAttempts: legacy queue \"b\""},

	"MaxRecoveries, negative": {func(c *pool.Config) { c.MaxRecoveries = -1 }, "MaxRecoveries: -1 is negative"},
	"MaxRecoveries of 1":      {func(c *pool.Config) { c.MaxRecoveries = 1 }, "MaxRecoveries: 1 would give up all that one lost process held; set at least 2"},
	"MaxRecoveries without leases": {func(c *pool.Config) {
		c.MaxRecoveries, c.RetryAfterDisabled, c.Queues = 3, true, three()
		c.Queues[0].RetryAfter, c.Queues[2].RetryAfter = time.Minute, time.Minute
	}, "MaxRecoveries: leases of Queues[1], \"b\", never run out"},

	"DeadLetterLimits.Count": {func(c *pool.Config) { c.DeadLetterLimits.Count = -1 }, "DeadLetterLimits.Count: -1 is negative"},
	"DeadLetterLimits.Age":   {func(c *pool.Config) { c.DeadLetterLimits.Age = -1 }, "DeadLetterLimits.Age: -1ns is negative"},
	"DeadLetterLimits.Bytes": {func(c *pool.Config) { c.DeadLetterLimits.Bytes = -1 }, "DeadLetterLimits.Bytes: -1 is negative"},

	"no queues":                {func(c *pool.Config) { c.Queues = nil }, "Queues: at least one is required"},
	"Layout":                   {func(c *pool.Config) { c.Layout = pool.Zset + 1 }, "Queues[0].Layout: 3 is neither Legacy nor Zset"},
	"Layout of a queue":        {func(c *pool.Config) { c.Queues = three(); c.Queues[1].Layout = pool.Zset + 1 }, "Queues[1].Layout: 3 is neither Legacy nor Zset"},
	"Weight":                   {func(c *pool.Config) { c.Queues[0].Weight = 101 }, "Queues[0].Weight: 101 is not from 1 to 100"},
	"Weight, negative":         {func(c *pool.Config) { c.Queues[0].Weight = -1 }, "Queues[0].Weight: -1 is not from 1 to 100"},
	"no handler":               {func(c *pool.Config) { c.Handler = nil }, "Queues[0].Handler: queue \"orders\" has none, and Config.Handler is nil"},
	"the same queue twice":     {func(c *pool.Config) { c.Queues = append(three(), pool.Queue{Name: "b"}) }, "Queues[3].Name: \"b\" is Queues[1] already"},
	"the same key twice":       {func(c *pool.Config) { c.Queues = []pool.Queue{{Name: "queues:x"}, {Name: "x", Layout: pool.Zset}} }, "Queues[1].Name: \"x\" is Queues[0] already"},
	"no name":                  {func(c *pool.Config) { c.Queues[0].Name = "" }, "Queues[0].Name, KeyPrefix or DeadLetterKey: lua: queue name refused: it is empty"},
	"KeyPrefix with a tag":     {func(c *pool.Config) { c.KeyPrefix = "{app}:" }, "Queues[0].Name, KeyPrefix or DeadLetterKey: lua: key prefix refused: \"{app}:\" holds the whole hash tag \"{app}\"; put the tag in the queue's name"},
	"DeadLetterKey of its own": {func(c *pool.Config) { c.Queues[0].DeadLetterKey = "orders:processing" }, "Queues[0].Name, KeyPrefix or DeadLetterKey: lua: dead letter key refused: \"orders:processing\" is a key of queue \"orders\" itself"},
}

// three are queues named a, b and c.
func three() []pool.Queue { return []pool.Queue{{Name: "a"}, {Name: "b"}, {Name: "c"}} }

func TestRunRefusesAnInvalidConfig(t *testing.T) {
	t.Parallel()
	for name, row := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := valid(t)
			row.change(&cfg)
			lines := strings.Split(problem(t, cfg), "\n")
			if len(lines) != 2 || !strings.HasPrefix(lines[1], row.want) {
				t.Errorf("Run: %q, want one problem, %s…", lines, row.want)
			}
		})
	}
}

// TestAllProblemsAreJoined covers that a config with many mistakes is mended in one go.
func TestAllProblemsAreJoined(t *testing.T) {
	t.Parallel()
	err := pool.New(pool.Config{
		Queues:      []pool.Queue{{Name: "a:delayed", Weight: -1}, {Name: "b", RetryAfter: 1}, {}},
		Concurrency: -2, PollInterval: -1, MaxAttempts: -1, Poison: 9, FailureDelay: ptr(-1.0),
	}).Run(t.Context())
	for _, field := range []string{
		"Client:", "Concurrency:", "PollInterval:", "MaxAttempts:", "Poison:", "FailureDelay:", "Queues[0].Weight:",
		"Queues[0].Handler:", "Queues[0].Name", "Queues[1].Handler:", "Queues[1].RetryAfter:", "Queues[2].Name",
	} {
		if err == nil || !strings.Contains(err.Error(), "\n"+field) {
			t.Errorf("the error does not name %s", field)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got, err := pool.FillIn(valid(t))
	if err != nil {
		t.Fatal(err)
	}
	workers := max(16, 4*runtime.GOMAXPROCS(0))
	wantEqual(t, "Concurrency", got.Concurrency, workers)
	wantEqual(t, "Prefetch", got.Prefetch, 4*workers)
	wantEqual(t, "MaxInFlightBytes", got.MaxInFlightBytes, 64<<20)
	wantEqual(t, "Layout", got.Layout, pool.Legacy)
	wantEqual(t, "RetryAfter", got.RetryAfter, 90*time.Second)
	wantEqual(t, "HandlerTimeout", got.HandlerTimeout, 10*time.Minute)
	wantEqual(t, "DrainTimeout", got.DrainTimeout, 30*time.Second)
	wantEqual(t, "HardStopTimeout", got.HardStopTimeout, 5*time.Second)
	wantEqual(t, "PollInterval", got.PollInterval, time.Second)
	wantEqual(t, "UnknownURNDelay", got.UnknownURNDelay, time.Second)
	wantEqual(t, "LivenessLimit", got.LivenessLimit, time.Minute)
	wantEqual(t, "ReadinessLimit", got.ReadinessLimit, 30*time.Second)
	wantEqual(t, "UnknownURNMaxAge", got.UnknownURNMaxAge, time.Hour)
	wantEqual(t, "zero values", []any{
		got.LegacyRetry, got.UnknownURN, got.Poison, got.ForeignJobs, got.MigrationBatch, got.MaxAttempts,
	}, []any{pool.Leave, pool.UnknownDeadLetter, pool.BadDeadLetter, pool.BadDeadLetter, 0, int64(0)})
	q := got.Queues[0]
	wantEqual(t, "the queue's", []any{q.Layout, q.RetryAfter, q.Weight, q.DeadLetterKey}, []any{pool.Legacy, 90 * time.Second, 1, ""})
	if q.Handler == nil || got.Logger == nil {
		t.Error("no handler or no logger")
	}
}

// TestFilledIn covers what is derived from other fields, and the edges of what is allowed.
func TestFilledIn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*pool.Config)
		got    func(pool.Config) any
		want   any
	}{
		"Prefetch is at least one per queue": {
			func(c *pool.Config) {
				c.Concurrency, c.Queues = 1, append(three(), pool.Queue{Name: "d"}, pool.Queue{Name: "e"})
			},
			func(c pool.Config) any { return c.Prefetch }, 5,
		},
		"Prefetch may be Concurrency": {
			func(c *pool.Config) { c.Concurrency, c.Prefetch = 8, 8 }, func(c pool.Config) any { return c.Prefetch }, 8,
		},
		"RetryAfter is rounded up (L5)": {
			func(c *pool.Config) { c.RetryAfter = 1001 * time.Millisecond },
			func(c pool.Config) any { return c.Queues[0].RetryAfter }, 2 * time.Second,
		},
		"RetryAfter of a queue is rounded up": {
			func(c *pool.Config) { c.Queues[0].RetryAfter = 2*time.Second + 1 },
			func(c pool.Config) any { return c.Queues[0].RetryAfter }, 3 * time.Second,
		},
		"RetryAfterDisabled": {
			func(c *pool.Config) { c.RetryAfterDisabled = true },
			func(c pool.Config) any { return c.Queues[0].RetryAfter }, time.Duration(0),
		},
		"a queue's layout goes before the pool's": {
			func(c *pool.Config) { c.Layout, c.Queues = pool.Zset, three(); c.Queues[1].Layout = pool.Legacy },
			func(c pool.Config) any { return []pool.Layout{c.Queues[0].Layout, c.Queues[1].Layout} },
			[]pool.Layout{pool.Zset, pool.Legacy},
		},
		"HandlerTimeout up to a second before the lease": {
			func(c *pool.Config) {
				c.DisableLeaseRenewal, c.RetryAfter, c.HandlerTimeout = true, 5*time.Second, 4*time.Second
			},
			func(c pool.Config) any { return c.HandlerTimeout }, 4 * time.Second,
		},
		"FailureDelay 0": {
			func(c *pool.Config) { c.FailureDelay = ptr(0.0) }, func(c pool.Config) any { return *c.FailureDelay }, 0.0,
		},
		"MaxAttempts needs no Requeue without legacy queues": {
			func(c *pool.Config) { c.Layout, c.MaxAttempts = pool.Zset, 1 }, func(c pool.Config) any { return c.MaxAttempts }, int64(1),
		},
		"Weight 100": {
			func(c *pool.Config) { c.Queues[0].Weight = 100 }, func(c pool.Config) any { return c.Queues[0].Weight }, 100,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := valid(t)
			row.change(&cfg)
			filled, err := pool.FillIn(cfg)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, name, row.got(filled), row.want)
		})
	}
}

func TestRunTwice(t *testing.T) {
	t.Parallel()
	p := pool.New(pool.Config{})
	if err := p.Run(t.Context()); !errors.Is(err, pool.ErrConfig) {
		t.Fatalf("the first Run: %v", err)
	}
	if err := p.Run(t.Context()); !errors.Is(err, pool.ErrRunTwice) {
		t.Errorf("the second Run: %v, want ErrRunTwice", err)
	}
}

// TestRunTwiceAtOnce covers that the second Run disturbs nothing.
func TestRunTwiceAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig) {
		r.push(body(1, 0))
		p := r.start(r.config(function(ackAll)))
		p.settled(1)
		if err := p.Run(t.Context()); !errors.Is(err, pool.ErrRunTwice) {
			t.Errorf("a second Run: %v, want ErrRunTwice", err)
		}
		r.push(body(2, 0))
		wantEqual(t, "acked", p.settled(2).Acked, 2)
	})
}

// TestConfigPolicy: a config tells its policy without a client or queues, defaults filled in, and names what is wrong.
func TestConfigPolicy(t *testing.T) {
	t.Parallel()
	p, err := pool.Config{MaxAttempts: 3, LegacyRetry: pool.Requeue, HandlerTimeout: -1}.Policy()
	if err != nil || p.MaxAttempts != 3 || p.LegacyRetry != pool.Requeue || p.HandlerTimeout != 0 ||
		p.UnknownURNDelay != time.Second || p.UnknownURNMaxAge != time.Hour {
		t.Errorf("%+v, %v", p, err)
	}
	_, err = pool.Config{MaxAttempts: -1}.Policy()
	if !errors.Is(err, pool.ErrConfig) {
		t.Fatalf("got %v", err)
	}
	wantWords(t, err.Error(), "MaxAttempts: -1 is negative")
}
