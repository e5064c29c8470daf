package securitytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/delivery"
	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/pool"
	"github.com/babelpool/babelpool/router"
)

// TestAStormOfURNs: ten thousand different unknown URNs, long ones among them, with an OnError that panics each time, leave
// about a hundred lines, and a handler that fails meanwhile is still heard.
func TestAStormOfURNs(t *testing.T) {
	t.Parallel()
	const n = 10_000
	for _, layout := range layouts {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			s := newStation(t, layout, "")
			logs := newLogBook()
			mux := router.NewMux()
			mux.HandleFunc("urn:fail", func(context.Context, *delivery.Delivery) error { return errors.New("failing") })
			mux.HandleFunc("urn:panic", func(context.Context, *delivery.Delivery) error { panic("panicking") })
			p := start(t, pool.Config{
				Client: open(t, s.server.URL()), Queues: []pool.Queue{{Name: "orders"}}, Layout: layout, KeyPrefix: s.prefix,
				Handler: mux, Logger: logs.logger(),
				OnError: func(context.Context, error, envelope.Envelope, string) { panic(hostile) },
			})
			var texts []string
			for i := range n {
				urn := fmt.Sprintf("urn:storm:%d", i)
				if i%500 == 0 {
					urn += strings.Repeat("x", 10_000)
				}
				texts = append(texts, body(urn, i))
				if i%1000 == 999 {
					s.push(texts...)
					texts = nil
				}
			}
			p.until("the storm is over", func(c pool.QueueStats) bool { return c.UnknownURN == n && c.DeadLettered == n })
			s.push(body("urn:fail", 1), body("urn:panic", 2))
			p.until("two more", func(c pool.QueueStats) bool { return c.Failed == 2 })
			must(t, p.stop())

			if unknown := logs.count("no handler for URN"); unknown < 2 || unknown > 200 { // two minutes' at most
				t.Errorf("%d lines of unknown URNs", unknown)
			}
			if logs.count("handler failed") != 1 || logs.count("handler panicked") != 1 {
				t.Error("the storm hides failing handlers")
			}
			if lines, bytes := logs.lines(), len(logs.String()); lines > 220 || bytes > 1<<20 {
				t.Errorf("%d lines, %d bytes", lines, bytes)
			}
			for line := range strings.Lines(logs.String()) {
				if len(line) > 2000 && !strings.Contains(line, "goroutine ") { // a stack is as deep as it is
					t.Errorf("a line of %d bytes: %.200s", len(line), line)
				}
			}
			if stats := p.Stats(); len(stats.Queues) != 1 {
				t.Errorf("%d counters for one queue", len(stats.Queues))
			}
			logs.check(t)
		})
	}
}
