package limit_test

import (
	"context"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/limit"
	"github.com/babelpool/babelpool/router"
)

// Fifty mails a second, two reports at a time, and the rest as it comes.
func Example() {
	mux := router.NewMux()
	mux.Use(
		router.Logging(nil), // sees what is put off
		limit.ByURN(map[string]router.Middleware{
			"urn:babel:mails:send":    limit.Rate(50, 10),
			"urn:babel:reports:build": limit.Concurrency(2),
		}),
	)
	mux.HandleFunc("urn:babel:mails:send", func(context.Context, *delivery.Delivery) error { return nil })
	mux.HandleFunc("urn:babel:reports:build", func(context.Context, *delivery.Delivery) error { return nil })
	// Output:
}
