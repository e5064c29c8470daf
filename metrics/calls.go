package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelpool/babelpool/pool"
)

// calls is what the calls to Redis took and carried. Times and sizes are not told by queue: they are the server's, and
// histograms by queue would be many.
type calls struct {
	seconds  *prometheus.HistogramVec
	messages *prometheus.HistogramVec
	errors   *prometheus.CounterVec
}

func newCalls() *calls {
	return &calls{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "redis_call_duration_seconds",
			Help:    "Time of calls to Redis made for messages, failed ones included, by layout and operation.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"layout", "op"}),
		messages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "redis_call_messages",
			Help:    "Messages that calls to Redis carried, by layout and operation; calls that carried none are left out.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 11), // to 1,024: calls carry 1,000 at most
		}, []string{"layout", "op"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "redis_call_errors_total",
			Help: "Calls to Redis made for messages that failed, by queue and operation.",
		}, []string{"queue", "layout", "op"}),
	}
}

func (c *calls) observe(call pool.Call) {
	layout := call.Layout.String()
	c.seconds.WithLabelValues(layout, call.Op).Observe(call.Took.Seconds())
	switch {
	case call.Err != nil:
		c.errors.WithLabelValues(printable(call.Queue), layout, call.Op).Inc()
	case call.Messages > 0:
		c.messages.WithLabelValues(layout, call.Op).Observe(float64(call.Messages))
	}
}
