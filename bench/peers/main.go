// Command peers runs the same work on babelpool and on what a user would pick instead, in turn, on one private
// redis-server: messages of 300 bytes, published first, then consumed by a handler that binds data into a struct and
// returns. It prints one table and writes every run to a file.
//
//	go run . -messages 100000 -runs 5 -out ../results
//
// The module is its own, so that the project does not depend on its peers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/redisproc"
	"github.com/babelpool/babelpool/pool"
)

// bench is what a contender gets to work with.
type bench struct {
	client *redis.Client
	addr   string
	bodies []string
	work   *work
}

// contender is one way to consume the messages. prepare stores them; consume returns when all are acked.
type contender struct {
	name    string
	most    int // most messages per run; slow ones take fewer, rates are compared
	prepare func(ctx context.Context, b *bench) error
	consume func(ctx context.Context, b *bench) error
}

func main() {
	messages := flag.Int("messages", 200_000, "messages per run")
	runs := flag.Int("runs", 5, "runs of each contender, in turn")
	only := flag.String("only", "", "comma-separated contenders to run; all when empty")
	out := flag.String("out", "", "directory for the dated result file; none when empty")
	note := flag.String("revision", "", "revision of the project, for the result file")
	flag.Parse()
	if err := compare(*messages, *runs, *only, *out, *note); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func compare(messages, runs int, only, out, revision string) error {
	ctx := context.Background()
	var chosen []contender
	for _, c := range contenders() {
		if only == "" || strings.Contains(","+only+",", ","+c.name+",") {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("-only %q names no contender", only)
	}
	bodies, err := makeBodies(messages)
	if err != nil {
		return err
	}
	report := newReport(messages, runs, revision)
	for run := range runs {
		for _, c := range chosen {
			one, err := runOnce(ctx, c, bodies)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			report.add(c.name, one)
			fmt.Fprintf(os.Stderr, "run %d of %d  %-18s %9.0f msg/s  redis %5.1f µs/msg  client %5.1f µs/msg\n",
				run+1, runs, c.name, one.PerSecond, one.RedisMicros, one.ClientMicros)
		}
	}
	fmt.Print(report.table())
	if out == "" {
		return nil
	}
	path := filepath.Join(out, "peers-"+time.Now().UTC().Format("2006-01-02")+".json")
	fmt.Fprintln(os.Stderr, "written to", path)
	return report.write(path)
}

// runOnce gives a contender an empty server of its own, so that none inherits another's memory.
func runOnce(ctx context.Context, c contender, bodies []string) (result, error) {
	server, err := redisproc.Start(ctx, redisproc.Config{})
	if err != nil {
		return result{}, err
	}
	defer func() { _ = server.Stop() }()
	client, err := pool.OpenRedis(server.URL())
	if err != nil {
		return result{}, err
	}
	defer func() { _ = client.Close() }()
	n := min(len(bodies), c.most)
	b := &bench{client: client, addr: server.Addr(), bodies: bodies[:n], work: newWork(n)}
	if err := c.prepare(ctx, b); err != nil {
		return result{}, fmt.Errorf("prepare: %w", err)
	}
	redisBefore, err := server.CPU()
	if err != nil {
		return result{}, err
	}
	clientBefore, start := processCPU(), time.Now()
	b.work.started = start
	if err := c.consume(ctx, b); err != nil {
		return result{}, fmt.Errorf("consume: %w", err)
	}
	took := time.Since(start)
	if b.work.elapsed > 0 {
		took = b.work.elapsed // measured by the contender itself, such as another process
	}
	redisAfter, err := server.CPU()
	if err != nil {
		return result{}, err
	}
	return newResult(n, took, redisAfter-redisBefore, processCPU()-clientBefore), nil
}

var errIncomplete = errors.New("not every message was handled")
