package securitytest

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/pool"
)

// counted makes the station's consumers count lost workers, with more counts than are kept.
func (s *station) counted() {
	s.t.Helper()
	s.recoveries = 3
	words := []any{"HSET", s.keys.Recoveries}
	for i := range 10_100 {
		words = append(words, fmt.Sprint("m", i), 1)
	}
	s.do(words...)
}

// TestACLRecoveries: a consumer that counts lost workers (B21) uses, beside a consumer's commands, exactly those of the
// README's block of that name, on the same keys.
func TestACLRecoveries(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		s := newStation(t, layout, "")
		all := slices.Concat(commands(t, "consumer"), commands(t, "recoveries"))
		client := open(t, s.user("consumer", all, narrowKeys(t, layout, s.prefix)))
		s.begin()
		s.counted()
		s.consumeTour(client)
		s.storeTour(client)
		used := map[string]bool{}
		s.collect(used)
		for _, name := range append(commands(t, "consumer"), "hello") {
			delete(used, name)
		}
		want := slices.Sorted(slices.Values(commands(t, "recoveries")))
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(used))); diff != "" {
			t.Errorf("%s: commands beside a consumer's (-README +used):\n%s", layout, diff)
		}
	}
}

// TestACLRecoveriesMissing: MaxRecoveries without one of its permissions holds the queue up, or works without it; nothing
// is lost, and it goes on when the permission is granted. Redis refuses a command in the middle of a script, and what the
// script had taken would be gone.
func TestACLRecoveriesMissing(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		for _, missing := range commands(t, "recoveries") {
			t.Run(layout.String()+" "+missing, func(t *testing.T) {
				t.Parallel()
				s := newStation(t, layout, "")
				s.counted()
				all := slices.Concat(commands(t, "consumer"), commands(t, "recoveries"))
				least := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == missing })
				patterns := narrowKeys(t, layout, s.prefix)
				client := open(t, s.user("consumer", least, patterns))
				const n = 20
				for i := range n {
					s.push(body("urn:ack", i))
				}
				want := int64(n)
				if missing != "hlen" && missing != "hmget" { // the sweep needs these as well, and would fail before anything is popped
					s.expired(body("urn:ack", n))
					want++
				}
				logs := &testlog.Recorder{}
				p := start(t, pool.Config{
					Client: client, Queues: []pool.Queue{{Name: "orders"}}, Layout: layout, KeyPrefix: s.prefix, Handler: ackAll,
					MaxRecoveries: s.recoveries, RetryAfter: 10 * time.Second, Logger: slog.New(logs),
				})
				p.until("the server has refused it", func(pool.QueueStats) bool { return len(s.do("ACL", "LOG").([]any)) > 0 })
				s.user("consumer", all, patterns)
				p.until("all are acked", func(c pool.QueueStats) bool { return c.Acked == want })
				must(t, p.stop())
			})
		}
	}
}
