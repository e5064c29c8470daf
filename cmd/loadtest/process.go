package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/pool"
)

// histogramEvery is how often a consumer process tells its latencies: what one that is killed takes along.
const histogramEvery = time.Second

// errOrphaned ends a consumer process whose run is gone.
var errOrphaned = errors.New("the process of the run is gone")

// process is a consumer process.
type process struct {
	worker
	pool *pool.Pool
	in   *gob.Decoder
	out  *gob.Encoder

	idleCPU  time.Duration // used before it was told to go
	last     news
	finished atomic.Bool // the final news is about to be told; then the end of stdin is the answer
}

// processMain is main of a consumer process. It returns the exit code.
func processMain(stdin io.Reader, stdout, stderr io.Writer) int {
	// A terminal sends its signals to all processes of a run, and so do some that run commands. What they
	// mean is for the run to say.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	if err := consumeFor(stdin, stdout, stderr); err != nil {
		complain(stderr, err)
		return exitFailed
	}
	return exitBalanced
}

func consumeFor(stdin io.Reader, stdout, stderr io.Writer) error {
	p := &process{in: gob.NewDecoder(stdin), out: gob.NewEncoder(stdout)}
	var o order
	if err := p.in.Decode(&o); err != nil {
		return fmt.Errorf("no order: %w", err)
	}
	cfg, err := o.config()
	if err != nil {
		return err
	}
	shared := &sharedMemory{file: os.NewFile(sharedFD, "books")}
	books, err := newSharedBooks(shared)
	if err != nil {
		return err
	}
	client, err := pool.OpenRedis(o.Address)
	if err != nil {
		return err
	}
	p.worker = worker{cfg: cfg, runID: o.RunID, clock: newClock(), books: books, latencies: newLatencies()}
	p.join(o.Chaos, client)
	p.pool = p.newPool(client, o.Queue, prefixed{stderr, fmt.Sprintf("consumer process %d: ", o.Number)})
	p.last.Ready = true
	if err := p.out.Encode(p.last); err != nil {
		return err
	}
	p.last.Ready = false
	return errors.Join(p.obey(), client.Close())
}

// obey consumes from the command to go until the one to stop. When the run is gone it returns without waiting:
// the process ends, whatever its handlers do.
func (p *process) obey() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	goes, orphaned, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(goes) })
	var g errgroup.Group
	g.Go(func() error {
		for {
			var c command
			if p.in.Decode(&c) != nil {
				if !p.finished.Load() {
					close(orphaned)
				}
				return nil
			}
			if c.Go {
				begin()
			}
			if c.Stop {
				stop()
			}
		}
	})
	g.Go(func() error {
		select {
		case <-goes:
		case <-ctx.Done():
		}
		defer close(done)
		return p.consume(ctx)
	})
	select {
	case <-done:
		return g.Wait()
	case <-orphaned:
		return errOrphaned
	}
}

// consume runs the pool and tells how it goes, the end included.
func (p *process) consume(ctx context.Context) error {
	p.idleCPU, p.last.CPUKnown = ownCPU()
	stopped := make(chan struct{})
	var g errgroup.Group
	g.Go(func() error {
		defer close(stopped)
		return p.pool.Run(ctx)
	})
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	toldHistogram := p.clock.now()
	for {
		select {
		case <-ticker.C:
			withHistogram := p.clock.now()-toldHistogram >= histogramEvery
			if withHistogram {
				toldHistogram = p.clock.now()
			}
			if err := p.tell(withHistogram); err != nil {
				return err // nobody listens, which the other side of obey is about to find out as well
			}
		case <-stopped:
			p.last.Final = true
			p.finished.Store(true)
			if err := g.Wait(); err != nil {
				p.last.Err = err.Error()
			}
			return p.tell(true)
		}
	}
}

// tell sends the news, if there are any.
func (p *process) tell(withHistogram bool) error {
	if c := countsOf(p.pool.Stats()); c != p.last.Counts {
		p.last.Counts = c
		if used, ok := ownCPU(); ok {
			p.last.CPU = used - p.idleCPU
		}
	} else if !p.last.Final {
		return nil
	}
	p.last.Histogram = nil
	if withHistogram {
		text, err := p.latencies.all().Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return err
		}
		p.last.Histogram = text
	}
	return p.out.Encode(p.last)
}

// prefixed says on each line who writes. A log handler writes whole lines.
type prefixed struct {
	w    io.Writer
	name string
}

// Write writes the lines of b.
func (p prefixed) Write(b []byte) (int, error) {
	if _, err := p.w.Write(append([]byte(p.name), b...)); err != nil {
		return 0, err
	}
	return len(b), nil
}
