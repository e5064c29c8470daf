package faulttest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// childEnv holds the config of a consumer process; its presence makes a test binary one.
const childEnv = "BQ_FAULTTEST_CHILD"

// childConfig is what a consumer process is told.
type childConfig struct {
	URL, Prefix, Queue    string
	Layout                pool.Layout
	Concurrency, Prefetch int
	RetryAfter, Handler   time.Duration
	MaxRecoveries         int64
	Kills                 *int // the message whose handler ends the process; nil = none
}

// childMain consumes until SIGTERM, or until its parent is gone. Each report is a line in one write, so a
// killed process leaves whole lines: "start N" before a handler works, "done N" before it returns nil, and so
// before its ack can be sent; "stats JSON" at an orderly end.
func childMain(config string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent closes its end, or dies
		os.Exit(3)
	}()
	var mu sync.Mutex
	report := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.WriteString(line + "\n") // without a reader the process ends soon
	}
	mux := router.NewMux()
	mux.HandleFunc(testURN, func(ctx context.Context, d *delivery.Delivery) error {
		seq, ok := sequence(d.Body)
		if !ok {
			return errors.New("a body without a number")
		}
		report("start " + strconv.Itoa(seq))
		if c.Kills != nil && *c.Kills == seq {
			os.Exit(137)
		}
		timer := time.NewTimer(c.Handler)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		report("done " + strconv.Itoa(seq))
		return nil
	})
	client, err := pool.OpenRedis(c.URL)
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 2
	}
	p := pool.New(pool.Config{
		Client: client, Queues: []pool.Queue{{Name: c.Queue}}, Layout: c.Layout, KeyPrefix: c.Prefix, Handler: mux,
		Concurrency: c.Concurrency, Prefetch: c.Prefetch, RetryAfter: c.RetryAfter,
		MaxRecoveries: c.MaxRecoveries,
		Logger:        slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	err = errors.Join(p.Run(ctx), client.Close())
	stats, _ := json.Marshal(p.Stats().Queues) // numbers and a string
	report("stats " + string(stats))
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

// child is a consumer process as its test sees it.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	log   strings.Builder // valid after the end
	ended chan struct{}   // closed when all reports were read and the process was waited for
	err   error           // how it ended

	mu     sync.Mutex
	starts map[int]int // by this process
	begun  []int       // the same in order
	stats  pool.QueueStats
}

// startChild runs a consumer process on the rig's queue. Its reports go to the ledger as well.
func (r *rig) startChild(c childConfig) *child {
	r.t.Helper()
	if c.URL == "" {
		c.URL = r.server.URL()
	}
	c.Prefix, c.Queue, c.Layout = r.prefix, r.queue, r.layout
	config, err := json.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	p := &child{t: r.t, cmd: exec.Command(self), ended: make(chan struct{}), starts: map[int]int{}}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(config))
	p.cmd.Stderr = &p.log
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		r.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.read(r, lines.Text())
		}
		p.err = p.cmd.Wait()
	}()
	r.t.Cleanup(func() {
		p.kill()
		if r.t.Failed() {
			r.t.Logf("log of the consumer process:\n%s", p.log.String())
		}
	})
	return p
}

// read takes one report.
func (p *child) read(r *rig, line string) {
	word, rest, _ := strings.Cut(line, " ")
	if word == "stats" {
		var stats []pool.QueueStats
		if err := json.Unmarshal([]byte(rest), &stats); err != nil || len(stats) != 1 {
			r.t.Errorf("a consumer process reported %q", line)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stats = stats[0]
		return
	}
	seq, err := strconv.Atoi(rest)
	switch {
	case err == nil && word == "start":
		r.begin(seq)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.starts[seq]++
		p.begun = append(p.begun, seq)
	case err == nil && word == "done":
		r.finish(seq)
	default:
		r.t.Errorf("a consumer process reported %q", line)
	}
}

// begunSoFar is the order in which handlers started.
func (p *child) begunSoFar() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]int(nil), p.begun...)
}

// awaitStarts waits until n handlers have started.
func (p *child) awaitStarts(n int) {
	p.t.Helper()
	testredis.Eventually(p.t, patience, func() bool { return len(p.begunSoFar()) >= n }, "%d handlers started", n)
}

// kill ends the process as a crash does, and returns when all that it reported was read.
func (p *child) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.stdin.Close()
	testredis.Await(p.t, p.ended, patience, "the consumer process's end")
}

// stop ends the process in order and expects nothing wrong.
func (p *child) stop() pool.QueueStats {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Errorf("stopping the consumer process: %v", err)
	}
	testredis.Await(p.t, p.ended, patience, "the consumer process's end")
	if p.err != nil {
		p.t.Errorf("the consumer process: %v", p.err)
	}
	return p.stats
}
