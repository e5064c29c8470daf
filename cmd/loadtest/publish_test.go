package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/publisher"
)

// scriptedSender answers each call with the error of each message, from the front of its script; nil beyond
// its end.
type scriptedSender struct {
	mu     sync.Mutex
	script [][]error
	calls  [][]publisher.Message
}

// PublishBatch answers and takes note.
func (s *scriptedSender) PublishBatch(_ context.Context, messages []publisher.Message) ([]publisher.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, append([]publisher.Message(nil), messages...))
	results := make([]publisher.Result, len(messages))
	var first error
	if len(s.script) > 0 {
		for i, err := range s.script[0] {
			results[i].Err = err
			if err != nil && first == nil {
				first = fmt.Errorf("the batch: %w", err)
			}
		}
		s.script = s.script[1:]
	}
	return results, first
}

// fakeTrial is a trial without a server.
func fakeTrial(t *testing.T, cfg config) (*trial, *scriptedSender, *bytes.Buffer) {
	t.Helper()
	var stderr bytes.Buffer
	srv := &server{source: sourceMini}
	sender := &scriptedSender{}
	return &trial{
		worker: worker{cfg: cfg, runID: "0123abcd", clock: newClock(), books: newBooks(), latencies: newLatencies()},
		srv:    srv, show: newProgress(&stderr), mint: newTestMint(t, 300), sender: sender, consumer: local{pool.New(pool.Config{})},
	}, sender, &stderr
}

func TestPublishSortsTheFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr, sender, stderr := fakeTrial(t, config{messages: 4, payload: 300, prefill: true})
		away, lost := publisher.ErrUnavailable, publisher.ErrMayBeStored
		sender.script = [][]error{{nil, lost, away, publisher.ErrNotSent}, {away, away}, {nil, lost}}
		if err := tr.publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, call := range sender.calls {
			sizes = append(sizes, len(call))
		}
		if fmt.Sprint(sizes) != "[4 2 2]" {
			t.Errorf("sent %v messages: what may be stored must not be sent again, what is not must", sizes)
		}
		for seq, want := range []mark{stored, doubtful, stored, doubtful} {
			if got := mark(tr.books.entry(int64(seq)).marks.Load()); got != want {
				t.Errorf("message %d has marks %b, want %b", seq, got, want)
			}
		}
		if n := strings.Count(stderr.String(), "held up"); n != 1 {
			t.Errorf("told %d times of one outage:\n%s", n, stderr)
		}
	})
}

func TestPublishTellsThatItWorksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr, sender, stderr := fakeTrial(t, config{messages: 1, payload: 300, prefill: true})
		sender.script = [][]error{{publisher.ErrUnavailable}, {publisher.ErrUnavailable}}
		if err := tr.publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(stderr.String(), "works again\n") || strings.Count(stderr.String(), "\n") != 2 {
			t.Errorf("stderr: %s", stderr)
		}
	})
}

func TestPublishEndsWhenItIsRefused(t *testing.T) {
	t.Parallel()
	tr, sender, _ := fakeTrial(t, config{messages: 2, payload: 300, prefill: true})
	sender.script = [][]error{{nil, publisher.ErrRefused}}
	if err := tr.publish(t.Context()); !errors.Is(err, publisher.ErrRefused) {
		t.Errorf("error %v", err)
	}
	if !tr.publishingEnded.Load() || tr.books.stored.Load() != 1 {
		t.Errorf("ended %v, stored %d", tr.publishingEnded.Load(), tr.books.stored.Load())
	}
}

func TestPublishGivesUpAnAwayServerAtAnInterrupt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr, sender, _ := fakeTrial(t, config{messages: 1, payload: 300, prefill: true})
		for range 1000 {
			sender.script = append(sender.script, []error{publisher.ErrUnavailable})
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := tr.publish(ctx); err != nil {
			t.Error(err)
		}
		if n := tr.books.tally().Published; n != 0 || len(sender.calls) > 50 {
			t.Errorf("published %d after %d tries in 10 s", n, len(sender.calls))
		}
	})
}

// Publishing as fast as possible waits for the consumers once the backlog is large.
func TestTheBacklogIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 64 // of these messages fit in the bound
		tr, _, _ := fakeTrial(t, config{duration: time.Minute, payload: backlogBytes / most})
		tr.mint.payload = 0 // the bytes themselves are not needed
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tr.publish(ctx); err != nil {
			t.Fatal(err)
		}
		if n := tr.books.size.Load(); n < backlogLeast || n > backlogLeast+publishers*publishBatch {
			t.Errorf("%d messages published without a consumer", n)
		}
	})
}
