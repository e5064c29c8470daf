package health_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/babelpool/babelpool/health"
	"github.com/babelpool/babelpool/pool"
)

// Probes beside a worker, on a port of their own.
func Example() {
	p := pool.New(pool.Config{}) // Run follows; until then it is alive and not ready

	server := &http.Server{Addr: ":8081", Handler: health.Handler(p), ReadHeaderTimeout: time.Second}
	// A program runs server.ListenAndServe beside p.Run. Here is what a probe sees.
	web := httptest.NewServer(server.Handler)
	defer web.Close()
	for _, path := range []string{"/livez", "/readyz"} {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, web.URL+path, http.NoBody)
		if err != nil {
			panic(err)
		}
		answer, err := web.Client().Do(request)
		if err != nil {
			panic(err)
		}
		text, _ := io.ReadAll(answer.Body) // a short answer
		_ = answer.Body.Close()
		fmt.Print(path, " ", answer.StatusCode, " ", string(text))
	}
	// Output:
	// /livez 200 {"ok":true,"states":["starting"]}
	// /readyz 503 {"ok":false,"states":["starting"],"reasons":["the pool is starting"]}
}
