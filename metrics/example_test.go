package metrics_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/metrics"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// A worker whose metrics Prometheus can scrape.
func Example() {
	ctx, stop := context.WithCancel(context.Background()) // a program takes signal.NotifyContext
	defer stop()
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	_, _ = server.RPush("orders", `{"job":"urn:babel:orders:created","trace_id":"7b0a","data":{"order_id":1042},`+
		`"meta":{"id":"5c1d","queue":"orders","lang":"go","schema_version":1,"created_at":1749132727000},"attempts":0}`)
	rdb, err := pool.OpenRedis("redis://" + server.Addr())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	mux := router.NewMux()
	mux.HandleFunc("urn:babel:orders:created", func(context.Context, *delivery.Delivery) error {
		stop() // a worker would go on
		return nil
	})

	m := metrics.New(metrics.Config{})
	p := pool.New(m.Instrument(pool.Config{
		Client: rdb, Queues: []pool.Queue{{Name: "orders"}}, Handler: mux, Logger: slog.New(slog.DiscardHandler),
	}))
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(m.Collector(p))
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})) // a program serves it at /metrics
	defer web.Close()

	if err := p.Run(ctx); err != nil {
		log.Fatal(err)
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, web.URL, http.NoBody)
	if err != nil {
		log.Fatal(err)
	}
	page, err := web.Client().Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = page.Body.Close() }()
	text, err := io.ReadAll(page.Body)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `outcome="acked"`) || strings.Contains(line, "seconds_count{outcome") {
			fmt.Print(line)
		}
	}
	// Output:
	// babelpool_handler_duration_seconds_count{outcome="success",urn="other"} 0
	// babelpool_handler_duration_seconds_count{outcome="success",urn="urn:babel:orders:created"} 1
	// babelpool_messages_total{layout="legacy",outcome="acked",queue="orders"} 1
}
