package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/internal/testredis"
	"github.com/babelpool/babelpool/publisher"
)

func TestMain(m *testing.M) { testredis.Main(m) }

const (
	urn   = "urn:babel:orders:created"
	id    = "f1e2d3c4-b5a6-4789-90ab-cdef01234567"
	trace = "7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b"
)

var created = time.UnixMilli(1749132727000)

// fixed makes a message the same bytes each time.
func fixed() []publisher.Option {
	return []publisher.Option{
		publisher.WithID(id), publisher.WithTraceID(trace), envelope.WithCreatedAt(created),
	}
}

// body is the stored text of a message published with fixed.
func body(queue, data string) string {
	return fmt.Sprintf(`{"job":%q,"trace_id":%q,"data":%s,"meta":{"id":%q,"queue":%q,"lang":"go","schema_version":1,`+
		`"created_at":%d},"attempts":0}`, urn, trace, data, id, queue, created.UnixMilli())
}

// target is a queue of one layout on one server, looked at from the outside: keys are spelled out here.
type target struct {
	publisher.Config
	direct *redis.Client // for looking; Config.Client may go through a proxy
}

func newTarget(layout publisher.Layout, client *redis.Client, prefix string) target {
	return target{publisher.Config{
		Client: client, Queue: "orders", Layout: layout, KeyPrefix: prefix, Logger: slog.New(slog.DiscardHandler),
	}, client}
}

// each runs fn for both layouts on both servers.
func each(t *testing.T, fn func(t *testing.T, b testredis.Backend, at target)) {
	t.Helper()
	for _, layout := range []publisher.Layout{publisher.Legacy, publisher.Zset} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, b testredis.Backend) {
				fn(t, b, newTarget(layout, b.Client, b.Prefix))
			})
		})
	}
}

func (at target) open(t testing.TB) *publisher.Publisher {
	t.Helper()
	p, err := publisher.New(at.Config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (at target) key() string {
	if at.Layout == publisher.Zset {
		return at.KeyPrefix + "queues:" + at.Queue
	}
	return at.KeyPrefix + at.Queue
}

// stored fails the test unless ready holds exactly these texts and, in the zset layout, as many tokens.
func (at target) stored(t *testing.T, want ...string) {
	t.Helper()
	got, err := at.direct.LRange(t.Context(), at.key(), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 {
		want = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
	at.tokens(t, len(want))
}

// count fails the test unless ready holds so many messages, with as many tokens in the zset layout.
func (at target) count(t *testing.T, want int) {
	t.Helper()
	got, err := at.direct.LLen(t.Context(), at.key()).Result()
	if err != nil || int(got) != want {
		t.Errorf("%d messages stored (%v), want %d", got, err, want)
	}
	at.tokens(t, want)
}

func (at target) tokens(t *testing.T, want int) {
	t.Helper()
	if at.Layout != publisher.Zset {
		want = 0 // and nothing may have made the key
	}
	got, err := at.direct.LRange(t.Context(), at.key()+":notify", 0, -1).Result()
	if err != nil || len(got) != want {
		t.Errorf("%d notify tokens (%v), want %d", len(got), err, want)
	}
	for _, token := range got {
		if token != "1" {
			t.Errorf("notify token %q, want 1", token)
		}
	}
}

// classes are the classes a failed send can have. They exclude each other.
var classes = []error{
	publisher.ErrMayBeStored, publisher.ErrUnavailable, publisher.ErrRefused, publisher.ErrNotSent,
	publisher.ErrEncode, publisher.ErrNoDelay, publisher.ErrNegativeDelay, publisher.ErrDuplicateBody,
}

// wantClass fails the test unless err has this class and no other.
func wantClass(t *testing.T, err, want error) {
	t.Helper()
	for _, class := range classes {
		if got := errors.Is(err, class); got != errors.Is(want, class) {
			t.Errorf("error %q: is %q: %t, want %t", err, class, got, !got)
		}
	}
}

// hook is a client hook that sees each single command before it is sent and can fail it.
type hook func(cmd redis.Cmder) error

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := h(cmd); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}
