package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelpool/babelpool/pool"
)

// Source is what a Collector asks: a *pool.Pool.
type Source interface {
	Stats() pool.Stats
	Health() pool.Health
	Depths(ctx context.Context) ([]pool.QueueDepth, error)
}

// collector reads a pool at each scrape. What the pool counts itself is not counted a second time.
type collector struct {
	metrics *Metrics
	source  Source
}

// Describe is prometheus.Collector's.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
	for _, v := range c.vectors() {
		v.Describe(ch)
	}
}

func (c *collector) vectors() []prometheus.Collector {
	m := c.metrics
	return []prometheus.Collector{m.handlers.seconds, m.calls.seconds, m.calls.messages, m.calls.errors}
}

// Collect is prometheus.Collector's.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, v := range c.vectors() {
		v.Collect(ch)
	}
	stats, health := c.source.Stats(), c.source.Health()
	emit := emitter(ch)
	emit.gauge(live, flag(health.Live))
	emit.gauge(ready, flag(health.Ready))
	emit.gauge(held, float64(stats.Held))
	emit.gauge(slots, float64(stats.Prefetch))
	emit.gauge(freeSlots, float64(stats.Prefetch-stats.Held))
	emit.gauge(busyWorkers, float64(stats.Running))
	emit.gauge(workers, float64(stats.Concurrency))
	for _, q := range health.Queues {
		emit.gauge(redisAway, q.Away.Seconds(), printable(q.Name), q.Layout.String())
	}
	for i := range stats.Queues {
		emit.queue(&stats.Queues[i])
	}
	if !c.metrics.noDepths {
		c.depths(emit, stats.Queues)
	}
}

// depths asks Redis. A queue that cannot be read has a 0 for it, and the scrape goes on.
func (c *collector) depths(emit emitter, queues []pool.QueueStats) {
	ctx, cancel := context.WithTimeout(context.Background(), c.metrics.depthTimeout)
	defer cancel()
	found, _ := c.source.Depths(ctx) // what failed is missing in what is found
	type key struct {
		name   string
		layout pool.Layout
	}
	up := map[key]bool{}
	now := time.Now()
	for _, d := range found {
		name, layout := printable(d.Name), d.Layout.String()
		up[key{d.Name, d.Layout}] = true
		emit.gauge(queueMessages, float64(d.Ready), name, layout, "ready")
		emit.gauge(queueMessages, float64(d.InFlight), name, layout, "in_flight")
		emit.gauge(queueMessages, float64(d.Delayed), name, layout, "delayed")
		emit.gauge(queueMessages, float64(d.DeadLetters), name, layout, "dead_letter")
		if age, ok := d.Age(now); ok {
			emit.gauge(oldestReady, age.Seconds(), name, layout)
		}
	}
	for _, q := range queues {
		emit.gauge(depthUp, flag(up[key{q.Name, q.Layout}]), printable(q.Name), q.Layout.String())
	}
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
