//go:build unix

package faulttest

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// freeze stops the consumer process, as a long pause of the machine does, and waits for its last reports.
func (p *child) freeze() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	seen := -1
	for n := len(p.begunSoFar()); n != seen; n = len(p.begunSoFar()) {
		seen = n
		pause(p.t, 100*time.Millisecond)
	}
}

func (p *child) thaw() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		p.t.Fatal(err)
	}
}

// frozenSetup is a consumer process with one worker, frozen with a full buffer.
func frozenSetup(t *testing.T, layout pool.Layout) (r *rig, c *child, begun []int) {
	t.Helper()
	r = newSharedRig(t, layout)
	r.publish(64)
	c = r.startChild(childConfig{Concurrency: 1, Prefetch: 64, RetryAfter: 2 * time.Second, Handler: 50 * time.Millisecond})
	c.awaitStarts(5)
	c.freeze()
	if s := r.check(); len(s.flight) < 50 || len(s.ready) > 0 {
		t.Fatalf("%d in flight and %d ready in the frozen process, want a full buffer", len(s.flight), len(s.ready))
	}
	return r, c, c.begunSoFar()
}

// frozenFor is how long the process stays frozen: longer than its lease.
func frozenFor() time.Duration { return scaled(4*time.Second, 6*time.Second) }

// TestB12FrozenConsumerLosesItsBuffer freezes a consumer with a full buffer while another one takes over: when
// it runs on, it starts nothing of what it has lost.
func TestB12FrozenConsumerLosesItsBuffer(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		r, c, begun := frozenSetup(t, layout)
		frozen := time.Now()
		other := r.start(pool.Config{Concurrency: 4})
		other.until("the other consumer handled what the frozen one held", func(stats pool.QueueStats) bool {
			return stats.Acked > 50 && len(r.snapshot().flight) == 0
		})
		pause(t, max(0, frozenFor()-time.Since(frozen)))
		c.thaw()

		// The handler that was running goes on; its ack is late. What else it held is lost and known to be.
		other.stopClean()
		before := len(c.begunSoFar())
		r.publish(5)
		r.awaitAllDone()
		stored, done, _ := r.totals()
		t.Logf("%d of %d handled", done, stored)
		r.awaitEmpty()
		for _, seq := range c.begunSoFar()[len(begun):] {
			if seq < 64 {
				t.Errorf("message %d was started by the thawed process after its lease was lost", seq)
			}
		}
		if after := len(c.begunSoFar()); after-before != 5 {
			t.Errorf("the thawed process started %d messages, want the 5 new ones", after-before)
		}
		if stats := c.stop(); stats.Lost < 50 {
			t.Errorf("the frozen process lost its buffer and counted %+v", stats)
		}
		if n := r.started(begun[len(begun)-1]); n > 2 {
			t.Errorf("the message that was running was started %d times", n)
		}
	})
}

// TestB12FrozenConsumerKeepsItsBuffer is the same with nobody to take over: the leases are renewed before
// anything else, and each message is run once.
func TestB12FrozenConsumerKeepsItsBuffer(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		r, c, begun := frozenSetup(t, layout)
		pause(t, frozenFor())
		c.thaw()
		r.awaitAllDone()
		r.awaitEmpty()
		r.onceEach(t)
		stats := c.stop()
		if stats.Acked != 64 || stats.Moved != 0 || stats.Lost != 0 {
			t.Errorf("64 acks, nothing moved or lost expected: %+v", stats)
		}
		if !slices.Equal(begun, c.begunSoFar()[:len(begun)]) {
			t.Error("the reports are out of order")
		}
		testredis.Eventually(t, patience, func() bool { return len(r.snapshot().ready) == 0 }, "ready is empty")
	})
}
