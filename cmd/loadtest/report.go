package main

import (
	"time"

	"github.com/babelpool/babelpool/cmd/loadtest/page"
	"github.com/babelpool/babelpool/pool"
)

// report is what a run found, as -json writes it. The names are stable.
type report struct {
	Config       reportConfig    `json:"config"`
	Redis        reportRedis     `json:"redis"`
	Published    int64           `json:"published"`
	Acked        int64           `json:"acked"`
	Redelivered  int64           `json:"redelivered"`
	Duplicated   int64           `json:"duplicated"`
	DeadLettered int64           `json:"dead_lettered"`
	LeftReady    int64           `json:"left_ready"`
	LeftInFlight int64           `json:"left_in_flight"`
	LeftDelayed  int64           `json:"left_delayed"`
	Lost         int64           `json:"lost"`
	Reconciled   bool            `json:"reconciled"`
	PublishPerS  float64         `json:"publish_per_s"`
	AckedPerS    float64         `json:"acked_per_s"`
	RedisCPU     *float64        `json:"redis_cpu_us_per_msg"`
	ClientCPU    *float64        `json:"client_cpu_us_per_msg"`
	LatencyMS    *latency        `json:"latency_ms"`
	MissedSends  *int64          `json:"missed_sends"` // sent more than missedAfter too late; null without -rate
	LateMSMax    *float64        `json:"late_ms_max"`
	Processes    []reportProcess `json:"processes"` // null when this process consumed
	faultReport

	samples        samples      // for the page
	curve          []page.Point // likewise
	consumingTime  time.Duration
	publishingTime time.Duration
	tally          tally
	server         *server
	queue          string
}

// reportProcess is what one of -processes did. A process that was killed may have acked a few messages more than
// it could tell; the counts of the report know them.
type reportProcess struct {
	Acked     int64    `json:"acked"`
	ClientCPU *float64 `json:"client_cpu_us_per_msg"`
}

// reportRedis says which server it was.
type reportRedis struct {
	Source  string `json:"source"` // redis-server, url or miniredis
	Version string `json:"version"`
}

// reportConfig holds the flags as they were used, durations in the notation of the flags.
type reportConfig struct {
	Redis       string  `json:"redis"` // without a password; empty for the embedded choice
	Layout      string  `json:"layout"`
	Messages    *int64  `json:"messages"` // null when duration counts
	Duration    *string `json:"duration"` // null when messages counts
	Rate        float64 `json:"rate"`
	Processes   int     `json:"processes"`
	Concurrency int     `json:"concurrency"`
	Prefetch    int     `json:"prefetch"`
	Batch       int     `json:"batch"` // 0 = the pool's default
	Payload     int     `json:"payload"`
	HandlerTime string  `json:"handler_time"`
	Fail        float64 `json:"fail"`
	Backoff     string  `json:"backoff"`
	RetryAfter  string  `json:"retry_after"`
	LegacyRetry string  `json:"legacy_retry"`
	MaxAttempts int64   `json:"max_attempts"`
	Prefill     bool    `json:"prefill"`
}

func (c *config) report() reportConfig {
	r := reportConfig{
		Layout: c.layout.String(), Rate: c.rate, Processes: c.processes, Concurrency: c.concurrency, Prefetch: c.prefetch,
		Batch: c.batch, Payload: c.payload, HandlerTime: c.handlerTime.String(), Fail: c.fail, Backoff: c.backoff.String(),
		RetryAfter: c.retryAfter.String(), LegacyRetry: "leave", MaxAttempts: c.maxAttempts, Prefill: c.prefill,
	}
	if c.redis != "" {
		r.Redis = redacted(c.redis)
	}
	if c.legacyRetry == pool.Requeue {
		r.LegacyRetry = "requeue"
	}
	if c.duration > 0 {
		text := c.duration.String()
		r.Duration = &text
	} else {
		r.Messages = &c.messages
	}
	return r
}

// report closes the books.
func (t *trial) report() *report {
	sums, c := t.books.tally(), &t.consumption
	r := &report{
		Config: t.cfg.report(), Redis: reportRedis{t.srv.source, t.srv.version}, Published: sums.Published, Acked: sums.Acked,
		Redelivered: sums.Redelivered, Duplicated: sums.Duplicated, DeadLettered: sums.DeadLettered, LeftReady: sums.LeftReady,
		LeftInFlight: sums.LeftInFlight, LeftDelayed: sums.LeftDelayed, Lost: sums.Lost, Reconciled: sums.balanced(),
		consumingTime: c.to - c.from, publishingTime: t.publishTime, tally: sums, server: t.srv, queue: t.queue,
		samples: t.samples,
	}
	r.PublishPerS, r.AckedPerS = perSecond(sums.Published, t.publishTime), perSecond(sums.Acked, c.to-c.from)
	r.RedisCPU = perMessage(c.redisCPU, sums.Acked, c.redisKnown)
	cpu, known := c.clientCPU, c.cpuKnown
	for _, p := range t.consumer.processes() {
		cpu, known = cpu+p.cpu, known && p.cpuKnown
		r.Processes = append(r.Processes, reportProcess{p.acked, perMessage(p.cpu, p.acked, p.cpuKnown)})
	}
	r.ClientCPU = perMessage(cpu, sums.Acked, known)
	if !t.cfg.prefill {
		r.LatencyMS, r.curve = t.latencies.summary(), t.latencies.latencyCurve()
	}
	if t.cfg.rate > 0 {
		missed, most := t.lateness.missed.Load(), rounded(time.Duration(t.lateness.most.Load()).Seconds()*1000, 3)
		r.MissedSends, r.LateMSMax = &missed, &most
	}
	r.addFaults(t)
	return r
}

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return rounded(float64(n)/d.Seconds(), 1)
}

// perMessage is in microseconds; nil where it is not known.
func perMessage(d time.Duration, n int64, known bool) *float64 {
	if !known || n == 0 {
		return nil
	}
	v := rounded(float64(d.Nanoseconds())/1000/float64(n), 3)
	return &v
}
