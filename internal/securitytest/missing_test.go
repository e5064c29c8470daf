package securitytest

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/testlog"
	"github.com/babelpool/babelpool/pool"
)

// TestACLCommandMissing: a consumer without one of its permissions holds its queue up, or works without it. Nothing is
// lost, and all goes on when the permission is granted. Redis refuses a command in the middle of a script, and what the
// script had taken would be gone.
func TestACLCommandMissing(t *testing.T) { // R1, B22
	t.Parallel()
	for _, layout := range layouts {
		for _, missing := range commands(t, "consumer") {
			t.Run(layout.String()+" "+missing, func(t *testing.T) {
				t.Parallel()
				s := newStation(t, layout, "")
				all := commands(t, "consumer")
				least := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == missing })
				patterns := narrowKeys(t, layout, s.prefix)
				client := open(t, s.user("consumer", least, patterns))
				const n = 20
				for i := range n {
					s.push(body("urn:ack", i))
				}
				s.expired(body("urn:ack", n))
				p := start(t, pool.Config{
					Client: client, Queues: []pool.Queue{{Name: "orders"}}, Layout: layout, KeyPrefix: s.prefix, Handler: ackAll,
					RetryAfter: 3 * time.Second, Logger: slog.New(&testlog.Recorder{}),
				})
				p.until("the server has refused it, or all are acked", func(c pool.QueueStats) bool {
					return c.Acked >= n || len(s.do("ACL", "LOG").([]any)) > 0
				})
				s.user("consumer", all, patterns)
				// A message whose ack was refused half-way may be handled twice, but each is handled.
				p.until("all are acked", func(c pool.QueueStats) bool { return c.Acked+c.Missing+c.Late >= n+1 })
				must(t, p.stop())
			})
		}
	}
}
