package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/idempotency"
)

// slow is a handler that waits until it is let go, and says how its context stood then.
type slow struct {
	started chan struct{}
	release chan error // what it returns
	cause   chan error // of its context's end, as it is told to return
}

func newSlow() *slow {
	return &slow{make(chan struct{}, 10), make(chan error), make(chan error, 10)}
}

func (s *slow) handle(ctx context.Context, _ *delivery.Delivery) error {
	s.started <- struct{}{}
	err := <-s.release
	s.cause <- context.Cause(ctx)
	return err
}

// inBackground handles a message and returns the channel of its outcome.
func inBackground(ctx context.Context, h delivery.Handler, id string) chan error {
	ended := make(chan error, 1)
	go func() { ended <- h.Handle(ctx, message(id)) }()
	return ended
}

// While one worker handles a message another does not, and does not ack it either: the first may fail. It comes again
// later. After the first has succeeded it is acked.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"success": nil, "failure": errBoom} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, first, runs := newStore(), newSlow(), 0
			cfg := idempotency.Config{Store: s, Claims: s, ClaimDelay: 7 * time.Second}
			one, _ := wrap(cfg, first.handle)
			two, _ := wrap(cfg, func(context.Context, *delivery.Delivery) error { runs++; return nil })
			ended := inBackground(t.Context(), one, "x")
			<-first.started

			err := two.Handle(t.Context(), message("x"))
			if !errors.Is(err, idempotency.ErrClaimed) || delay(err) != 7*time.Second || runs != 0 {
				t.Errorf("the second ran %d times and ended with %v", runs, err)
			}
			if err := two.Handle(t.Context(), message("another")); err != nil || runs != 1 {
				t.Errorf("another message: %v, %d runs", err, runs)
			}
			first.release <- outcome
			if err := <-ended; !errors.Is(err, outcome) {
				t.Errorf("the first ended with %v", err)
			}
			want := 1
			if outcome != nil {
				want++
			}
			if err := two.Handle(t.Context(), message("x")); err != nil || runs != want {
				t.Errorf("after the first: %v, %d runs, want %d", err, runs, want)
			}
		})
	}
}

// delay is how long a verdict puts a message off; -1 for other errors.
func delay(err error) time.Duration {
	var later *delivery.PostponeError
	if !errors.As(err, &later) {
		return -1
	}
	return later.Delay
}

// A claim lasts as long as its handler, and then no longer.
func TestClaimIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, first := newStore(), newSlow()
		cfg := idempotency.Config{Store: s, Claims: s, ClaimExpiry: 30 * time.Second}
		h, logs := wrap(cfg, first.handle)
		ctx, cancel := context.WithCancel(t.Context())
		ended := inBackground(ctx, h, "x")
		<-first.started
		cancel() // the handler does not care, and still has the message in hand
		for range 20 {
			time.Sleep(9 * time.Second)
			if held, err := s.Claim(t.Context(), "x", "another", time.Minute); held || err != nil {
				t.Fatalf("another got the claim: %v", err)
			}
		}
		first.release <- nil
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if held, err := s.Claim(t.Context(), "x", "another", time.Minute); !held || err != nil {
			t.Errorf("the claim is still there: %v", err)
		}
		logs.Want(t)
	})
}

// A worker that dies keeps a message from the others until its claim runs out.
func TestClaimOfADeadWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, runs := newStore(), 0
		if held, err := s.Claim(t.Context(), "x", "the dead one's", 30*time.Second); !held || err != nil {
			t.Fatal(err)
		}
		h, _ := wrap(idempotency.Config{Store: s, Claims: s}, func(context.Context, *delivery.Delivery) error { runs++; return nil })
		time.Sleep(30*time.Second - 1)
		if err := h.Handle(t.Context(), message("x")); !errors.Is(err, idempotency.ErrClaimed) || runs != 0 {
			t.Errorf("%v, %d runs", err, runs)
		}
		time.Sleep(time.Nanosecond)
		if err := h.Handle(t.Context(), message("x")); err != nil || runs != 1 {
			t.Errorf("%v, %d runs", err, runs)
		}
	})
}

// A renewal that fails is tried again, and nobody is stopped for it. A claim that ran out meanwhile is taken anew; only
// when another has it is it lost, and then the handler is told.
func TestClaimThatCannotBeRenewed(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"ran out": false, "taken over": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, first := newStore(), newSlow()
				h, logs := wrap(idempotency.Config{Store: s, Claims: s, ClaimExpiry: 30 * time.Second}, first.handle)
				ended := inBackground(t.Context(), h, "x")
				<-first.started
				s.set("claim", errBoom)
				s.lose("x") // a server that restarted
				time.Sleep(35 * time.Second)
				s.lose("x")
				if taken {
					s.give("x", "another")
				}
				s.set("claim", nil)
				time.Sleep(10 * time.Second)
				first.release <- nil
				if err := <-ended; err != nil {
					t.Error(err)
				}
				cause := <-first.cause
				if taken != errors.Is(cause, idempotency.ErrClaimLost) || !taken && cause != nil {
					t.Errorf("the handler's context ended with %v", cause)
				}
				if holder := s.holder("x"); taken != (holder == "another") {
					t.Errorf("%q has the claim", holder)
				}
				logs.Want(t, "could not be renewed")
			})
		})
	}
}

// When the reply to a claim is lost nobody knows who has it. It is ended, so that the retry need not wait for it to run out.
func TestFailingClaim(t *testing.T) {
	t.Parallel()
	s, runs := newStore(), 0
	h, logs := wrap(idempotency.Config{Store: s, Claims: s}, func(context.Context, *delivery.Delivery) error { runs++; return nil })
	s.set("claim", errBoom)
	if err := h.Handle(t.Context(), message("x")); !errors.Is(err, idempotency.ErrClaim) || !errors.Is(err, errBoom) || runs != 0 {
		t.Errorf("%v, %d runs", err, runs)
	}
	s.set("claim", nil)
	if err := h.Handle(t.Context(), message("x")); err != nil || runs != 1 {
		t.Errorf("the retry: %v, %d runs", err, runs)
	}
	logs.Want(t)
}

// A claim that cannot be ended changes no outcome.
func TestFailingRelease(t *testing.T) {
	t.Parallel()
	s, outcome := newStore(), error(nil)
	h, logs := wrap(idempotency.Config{Store: s, Claims: s}, func(context.Context, *delivery.Delivery) error { return outcome })
	s.set("release", errBoom)
	if err := h.Handle(t.Context(), message("x")); err != nil {
		t.Error(err)
	}
	outcome = errors.New("another")
	if err := h.Handle(t.Context(), message("y")); !errors.Is(err, outcome) {
		t.Error(err)
	}
	logs.Want(t, "could not be ended")
}

// A panic in a renewal is one in the worker, where the pool sees it, and not the end of the process. The claim is ended.
func TestCrashInARenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, first := newStore(), newSlow()
		h, _ := wrap(idempotency.Config{Store: s, Claims: crashing{s}, ClaimExpiry: 3 * time.Second}, first.handle)
		how := make(chan string, 1)
		go func() { how <- end(h, "x") }()
		<-first.started
		time.Sleep(2 * time.Second)
		first.release <- nil
		if got := <-how; got == "" || got == "goexit" {
			t.Errorf("ended with %q, want the panic", got)
		}
		if s.holder("x") != "" {
			t.Error("the claim is still there")
		}
	})
}

// crashing are claims that panic when one is renewed.
type crashing struct{ *store }

func (c crashing) Claim(ctx context.Context, id, token string, expiry time.Duration) (bool, error) {
	if c.holder(id) == token {
		panic("a bug of the user's own")
	}
	return c.store.Claim(ctx, id, token, expiry)
}
