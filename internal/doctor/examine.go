package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/internal/flow"
	"github.com/babelpool/babelpool/lua"
)

// Queue is a queue to look at.
type Queue struct {
	Name   string
	Layout flow.Layout
	Keys   lua.Keys
	Prefix string
}

// Examine looks at the server and then at each queue. The error says that the server does not answer at all.
func Examine(ctx context.Context, client redis.UniversalClient, queues []Queue) ([]Finding, error) {
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, lua.Classify("ping", err)
	}
	s := &server{client: client}
	s.read(ctx)
	findings := s.examine(ctx)
	for _, q := range queues {
		e := &examination{queue: q, client: client, now: s.now}
		e.store = lua.New(q.Layout, lua.Options{Client: client, Keys: q.Keys})
		findings = append(findings, e.examine(ctx, s)...)
	}
	return findings, nil
}

// list collects findings.
type list struct {
	queue    string
	findings []Finding
}

func (l *list) add(level Level, check, advice, format string, args ...any) *Finding {
	l.findings = append(l.findings, Finding{
		Level: level, Check: check, Queue: l.queue, Found: fmt.Sprintf(format, args...), Advice: advice,
	})
	return &l.findings[len(l.findings)-1]
}

// unknown notes that a check could not be made.
func (l *list) unknown(check string, err error) {
	l.add(Unknown, check, "Allow it to the user of this command, or look at it as another one.", "cannot be looked at: %s", lua.Classify(check, err))
}

// ago is a duration for people.
func ago(d time.Duration) string { return d.Round(time.Second).String() }
