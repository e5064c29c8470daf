// Shutdown is a worker as systemd and Kubernetes want one: it answers health probes, and on SIGTERM it takes nothing more,
// finishes what runs, gives back what nobody started, and ends within its time. worker.service and worker.yaml beside this
// file run it.
//
//	BQ_REDIS_URL=redis://localhost:6379 go run ./examples/shutdown
//	curl localhost:8080/readyz
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/health"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

func main() {
	if err := run(os.Getenv("BQ_REDIS_URL"), cmp.Or(os.Getenv("HEALTH_ADDR"), ":8080")); err != nil {
		log.Fatal(err)
	}
}

func run(url, address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	rdb, err := pool.OpenRedis(url)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()

	mux := router.NewMux()
	mux.HandleFunc("urn:babel:orders:created", ship)
	p := pool.New(pool.Config{
		Client:  rdb,
		Queues:  []pool.Queue{{Name: "orders"}},
		Handler: mux,
		// Together less than TimeoutStopSec (systemd) and terminationGracePeriodSeconds (Kubernetes).
		DrainTimeout:    20 * time.Second,
		HardStopTimeout: 5 * time.Second,
	})

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("health on", listener.Addr())
	probes := &http.Server{Handler: health.Handler(p), ReadHeaderTimeout: 5 * time.Second}
	var g errgroup.Group
	g.Go(func() error {
		if err := probes.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		err := p.Run(ctx) // while it drains, /readyz says 503 and /livez 200
		return errors.Join(err, probes.Close())
	})
	return g.Wait()
}

// ship heeds its context: when the drain time is over it ends, and a message that fails then goes back uncharged.
func ship(ctx context.Context, d *delivery.Delivery) error {
	select {
	case <-time.After(100 * time.Millisecond):
		fmt.Println("shipped", d.Meta.ID)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
