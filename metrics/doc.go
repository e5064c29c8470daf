// Package metrics gives Prometheus what a pool does and what its queues hold. Nothing of it, and nothing of the Prometheus
// client, is linked into a program that does not import it.
//
//	m := metrics.New(metrics.Config{})
//	p := pool.New(m.Instrument(cfg))
//	prometheus.MustRegister(m.Collector(p))
//
// In flow the pool's counters, its health, the calls it makes to Redis, the runs of handlers, and at each scrape the
// lengths of the queues. Out flow metrics whose names begin with babelpool_. The number of series is bounded whatever the
// messages hold (B48): URNs beyond a limit are counted together as "other", and nothing else of a message becomes a label.
//
// It never changes what a pool does, starts no goroutine, and a Redis that does not answer fails no scrape.
//
// Several pools of one process need registries, or labels, of their own:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"pool": "mail"}, prometheus.DefaultRegisterer).MustRegister(m.Collector(p))
package metrics
