package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelpool/babelpool/pool"
)

// descs are all metrics that a collector makes itself; desc adds to them.
var descs []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	descs = append(descs, d)
	return d
}

// ofQueue is desc for what each queue has.
func ofQueue(name, help string, labels ...string) *prometheus.Desc {
	return desc(name, help, append([]string{"queue", "layout"}, labels...)...)
}

// Of the pool.
var (
	live        = desc("live", "1 while every loop of the pool turns.")
	ready       = desc("ready", "1 while the pool consumes and Redis is there.")
	held        = desc("held_messages", "Messages reserved and not yet settled, and the room of reserve calls under way.")
	slots       = desc("slots", "Most messages the pool holds: Prefetch.")
	freeSlots   = desc("free_slots", "Slots that hold no message.")
	busyWorkers = desc("busy_workers", "Workers with a message in hand.")
	workers     = desc("workers", "Workers: Concurrency.")
)

// Of a queue, as the pool counts.
var (
	messages    = ofQueue("messages_total", "What became of messages. A settlement repeated after a lost reply may count as late.", "outcome")
	deadLetters = ofQueue("dead_letters_total", "Messages put in the dead letters, by the reason in their record.", "reason")
	redisAway   = ofQueue("redis_away_seconds", "How long Redis has not served the queue; 0 while it does.")
	paused      = ofQueue("paused", "1 while the queue is paused, by its key or in this process.")
	orphans     = ofQueue("orphan_messages", "Messages in flight without a deadline, at the last audit.")

	counters = []struct {
		desc *prometheus.Desc
		read func(*pool.QueueStats) int64
	}{
		{ofQueue("messages_reserved_total", "Messages reserved."), func(q *pool.QueueStats) int64 { return q.Reserved }},
		{ofQueue("handlers_started_total", "Handlers started."), func(q *pool.QueueStats) int64 { return q.Started }},
		{ofQueue("handler_failures_total", "Handler runs that failed; panics and timeouts included."), func(q *pool.QueueStats) int64 { return q.Failed }},
		{ofQueue("handler_panics_total", "Handler runs that panicked."), func(q *pool.QueueStats) int64 { return q.Panics }},
		{ofQueue("messages_postponed_total", "Handler runs that put their message off."), func(q *pool.QueueStats) int64 { return q.Postponed }},
		{ofQueue("messages_unknown_urn_total", "Messages without a handler."), func(q *pool.QueueStats) int64 { return q.UnknownURN }},
		{ofQueue("messages_poison_total", "Messages that are no acceptable envelope."), func(q *pool.QueueStats) int64 { return q.Poison }},
		{ofQueue("messages_moved_total", "Expired or due messages moved to ready."), func(q *pool.QueueStats) int64 { return q.Moved }},
		{ofQueue("leases_renewed_total", "Leases renewed, by message."), func(q *pool.QueueStats) int64 { return q.Renewed }},
		{ofQueue("leases_lost_total", "Messages whose lease was lost before they were settled."), func(q *pool.QueueStats) int64 { return q.Lost }},
		{ofQueue("orphans_adopted_total", "Orphans given a deadline."), func(q *pool.QueueStats) int64 { return q.Adopted }},
		{ofQueue("workers_lost_total", "Messages given up because workers were lost with them (MaxRecoveries)."), func(q *pool.QueueStats) int64 { return q.WorkersLost }},
		{ofQueue("dead_letters_discarded_total", "Dead letters discarded because of DeadLetterLimits."), func(q *pool.QueueStats) int64 { return q.Discarded }},
		{ofQueue("reconnects_total", "Times Redis served the queue again after it had been away."), func(q *pool.QueueStats) int64 { return q.Reconnects }},
	}

	outcomes = []struct {
		name string
		read func(*pool.QueueStats) int64
	}{
		{"acked", func(q *pool.QueueStats) int64 { return q.Acked }},
		{"released", func(q *pool.QueueStats) int64 { return q.Released }},
		{"returned", func(q *pool.QueueStats) int64 { return q.Returned }},
		{"requeued", func(q *pool.QueueStats) int64 { return q.Requeued }},
		{"left", func(q *pool.QueueStats) int64 { return q.Left }},
		{"dead_lettered", func(q *pool.QueueStats) int64 { return q.DeadLettered }},
		{"handed_back", func(q *pool.QueueStats) int64 { return q.HandedBack }},
		{"late", func(q *pool.QueueStats) int64 { return q.Late }},
		{"missing", func(q *pool.QueueStats) int64 { return q.Missing }},
	}
)

// Of a queue, as Redis says at each scrape. Every pool on a queue tells the same: take the largest, not the sum.
var (
	queueMessages = ofQueue("queue_messages", "Messages in Redis by state, whoever consumes them.", "state")
	oldestReady   = ofQueue("oldest_ready_age_seconds", "Age of the message at the head of ready by its created_at; none where it does not tell.")
	depthUp       = ofQueue("depth_up", "1 when Redis told what the queue holds, at this scrape.")
)

// emitter writes metrics to a scrape.
type emitter chan<- prometheus.Metric

func (e emitter) gauge(d *prometheus.Desc, value float64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (e emitter) counter(d *prometheus.Desc, value int64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

// queue writes what a pool counts of one queue.
func (e emitter) queue(q *pool.QueueStats) {
	name, layout := printable(q.Name), q.Layout.String()
	for _, o := range outcomes {
		e.counter(messages, o.read(q), name, layout, o.name)
	}
	e.counter(deadLetters, q.DeadFailed, name, layout, "failed")
	e.counter(deadLetters, q.DeadUnknownURN, name, layout, "unknown_urn")
	e.counter(deadLetters, q.DeadPoison, name, layout, "poison")
	e.gauge(paused, flag(q.Paused), name, layout)
	e.gauge(orphans, float64(q.Orphans), name, layout)
	for _, c := range counters {
		e.counter(c.desc, c.read(q), name, layout)
	}
}
