package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/pool"
)

// childEnv holds the config of a consumer process; its presence makes a test binary one.
const childEnv = "BQ_BENCH_CHILD"

const childPatience = 30 * time.Second

// childConfig is what a consumer process is told.
type childConfig struct {
	URL, Queue            string
	Layout                pool.Layout
	Concurrency, Prefetch int
}

// childReport is what it says at its end.
type childReport struct {
	Acked int64
	CPU   time.Duration // since it was let go
}

// childMain connects, writes "ready", and consumes from the line "go" until its input ends, which it also does
// when the parent dies. Its last line is a childReport.
func childMain(config string) int {
	report, err := childRun(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	text, _ := json.Marshal(report) // numbers
	fmt.Println(string(text))
	return 0
}

func childRun(config string) (childReport, error) {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return childReport{}, err
	}
	client, err := pool.OpenRedis(c.URL)
	if err != nil {
		return childReport{}, err
	}
	defer client.Close() //nolint:errcheck // the process ends
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		return childReport{}, err
	}
	p := pool.New(pool.Config{
		Client: client, Queues: []pool.Queue{{Name: c.Queue}}, Layout: c.Layout, Handler: handled(func(order) {}),
		Concurrency: c.Concurrency, Prefetch: c.Prefetch, Logger: slog.New(slog.DiscardHandler),
	})
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return childReport{}, err
	}
	before := clientCPU()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	err = p.Run(ctx)
	return childReport{Acked: ackedBy(p), CPU: clientCPU() - before}, err
}

// child is a consumer process as its benchmark sees it.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	log strings.Builder
}

// children starts n consumer processes on a queue and returns when all of them are ready. stop ends them.
func (r *rig) children(b *testing.B, n int, cfg childConfig, queue func(i int) string) (all []*child) {
	b.Helper()
	self, err := os.Executable()
	must(b, err)
	for i := range n {
		cfg.URL, cfg.Queue = r.server.URL(), queue(i)
		config, err := json.Marshal(cfg)
		must(b, err)
		// Nothing but a bug can keep a child from its end; then it must not keep the benchmark either.
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		b.Cleanup(cancel)
		c := &child{cmd: exec.CommandContext(ctx, self)}
		c.cmd.Env = append(os.Environ(), childEnv+"="+string(config))
		c.cmd.Stderr = &c.log
		out, err := c.cmd.StdoutPipe()
		must(b, err)
		c.out = bufio.NewReader(out)
		c.in, err = c.cmd.StdinPipe()
		must(b, err)
		must(b, c.cmd.Start())
		all = append(all, c)
		b.Cleanup(func() { _ = c.cmd.Process.Kill() }) // it has ended, unless the benchmark failed
	}
	for _, c := range all {
		if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
			b.Fatalf("a consumer process said %q, %v; its log:\n%s", line, err, c.log.String())
		}
	}
	return all
}

// release lets processes consume.
func release(b *testing.B, all []*child) {
	b.Helper()
	for _, c := range all {
		_, err := io.WriteString(c.in, "go\n")
		must(b, err)
	}
}

// stop ends processes, all at the same time, and adds up what they did.
func stop(b *testing.B, all []*child) (sum childReport) {
	b.Helper()
	for _, c := range all {
		must(b, c.in.Close())
	}
	for _, c := range all {
		var report childReport
		line, readErr := c.out.ReadString('\n')
		if err := c.cmd.Wait(); err != nil || readErr != nil {
			b.Fatalf("a consumer process: %v, %v; its log:\n%s", err, readErr, c.log.String())
		}
		must(b, json.Unmarshal([]byte(line), &report))
		sum.Acked += report.Acked
		sum.CPU += report.CPU
	}
	return sum
}
