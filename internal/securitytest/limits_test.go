package securitytest

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/pool"
)

// TestACLDeadLetterLimits: limits on the dead letters (B42) need the README's command of that name for their bytes, and no
// other. Without it they are held up, said once, and nothing else is.
func TestACLDeadLetterLimits(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		extra := commands(t, "dead letter bytes")
		s := newStation(t, layout, "")
		s.limits = pool.DeadLetterLimits{Count: 1 << 20, Age: time.Hour, Bytes: 1 << 30} // discard nothing that the tour counts
		patterns := narrowKeys(t, layout, s.prefix)
		client := open(t, s.user("consumer", slices.Concat(commands(t, "consumer"), extra), patterns))
		s.begin()
		s.consumeTour(client)
		must(t, s.trimAll(client))
		used := map[string]bool{}
		s.collect(used)
		for _, name := range append(commands(t, "consumer"), "hello") {
			delete(used, name)
		}
		if diff := cmp.Diff(extra, slices.Sorted(maps.Keys(used))); diff != "" {
			t.Errorf("%s: commands beside a consumer's (-README +used):\n%s", layout, diff)
		}

		s.user("consumer", commands(t, "consumer"), patterns)
		s.clear()
		s.push("poison", body("urn:ack", 1))
		logs := &testlog.Recorder{}
		p := start(t, pool.Config{
			Client: client, Queues: []pool.Queue{{Name: "orders"}}, Layout: layout, KeyPrefix: s.prefix, Handler: ackAll,
			DeadLetterLimits: pool.DeadLetterLimits{Bytes: 1}, Logger: slog.New(logs),
		})
		p.until("one is acked, one dead-lettered", func(c pool.QueueStats) bool { return c.Acked == 1 && c.DeadLettered == 1 })
		p.until("the log says so", func(pool.QueueStats) bool { return len(logs.With("trimming dead letters is held up")) == 1 })
		must(t, p.stop())
		if n := s.dead(); n != 1 {
			t.Errorf("%s: %d dead letters, want one", layout, n)
		}
	}
}
