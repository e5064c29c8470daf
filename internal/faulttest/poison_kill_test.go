package faulttest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/pool"
)

// killing is a consumer process that dies, like one out of memory, in the middle of the message numbered 0.
func killing(most int64) childConfig {
	poison := 0
	return childConfig{
		Concurrency: 4, Prefetch: 64, RetryAfter: 2 * time.Second, Handler: 5 * time.Millisecond,
		MaxRecoveries: most, Kills: &poison,
	}
}

// hasEnded reports whether a consumer process is gone.
func (p *child) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// TestB21PoisonThatKillsTheProcess publishes one message that takes its process down, first in the queue, and 50 good
// ones that each of the first processes holds as well when it dies. A supervisor starts the process again and again. After
// three lost workers the message is in the dead letters, and it alone: its neighbours were lost as often but for the
// last time, when it was held alone.
func TestB21PoisonThatKillsTheProcess(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const most, good = 3, 50
		r := newSharedRig(t, layout)
		bodies := r.publish(1 + good)
		finished := func(s snapshot) bool {
			_, done, _ := r.totals()
			return done == good && len(s.dead) == 1 && len(s.ready)+len(s.flight) == 0
		}
		kills := 0
		var stats pool.QueueStats
		for over := false; !over; {
			c := r.startChild(killing(most))
			testredis.Eventually(t, patience, func() bool {
				over = finished(r.snapshot()) // reports are read later than acks are seen, so nothing is checked yet
				return over || c.hasEnded()
			}, "the end of the process after %d kills, or of the work", kills)
			if over {
				stats = c.stop()
				break
			}
			r.check()
			if kills++; kills > most {
				t.Fatalf("killed %d processes", kills)
			}
		}
		if kills != most || r.started(0) != most {
			t.Errorf("killed %d processes in %d starts, want %d", kills, r.started(0), most)
		}
		s := r.check()
		record := s.dead[0]
		if stem(record) != stem(bodies[0]) {
			t.Fatalf("the dead letter is another message: %s", record)
		}
		for _, want := range []string{
			`"reason":"poison"`, `"error":"worker lost 3 times"`, `"exception":"*router.WorkersLostError"`, `"original_queue":"orders"`,
		} {
			if !strings.Contains(record, want) {
				t.Errorf("the record lacks %s: %s", want, record)
			}
		}
		if stats.WorkersLost != 1 {
			t.Errorf("%d messages are counted as given up", stats.WorkersLost)
		}
		// A process that died between a settlement and the removal of its counts left those of its first round behind.
		testredis.Eventually(t, patience, func() bool {
			left := r.control.HVals(t.Context(), r.keys.Recoveries).Val()
			return !slices.ContainsFunc(left, func(workers string) bool { return workers != "1" })
		}, "no other count is left when all messages are settled")
	})
}

// TestB21WithoutALimit: the message comes back for ever and kills each process that takes it; nothing is counted, nothing
// is lost, nothing is dead-lettered. That is the default.
func TestB21WithoutALimit(t *testing.T) {
	eachLayout(t, func(t *testing.T, layout pool.Layout) {
		const kills = 4
		r := newSharedRig(t, layout)
		r.publish(1 + 50)
		for n := range kills {
			c := r.startChild(killing(0))
			testredis.Await(t, c.ended, patience, "the process's death")
			s := r.check()
			if len(s.dead) > 0 {
				t.Fatalf("after %d kills: %d dead letters", n+1, len(s.dead))
			}
			if r.started(0) != n+1 {
				t.Fatalf("the message was started %d times in %d processes", r.started(0), n+1)
			}
		}
		if r.control.Exists(t.Context(), r.keys.Recoveries).Val() != 0 {
			t.Error("lost workers are counted although MaxRecoveries is off")
		}
	})
}
