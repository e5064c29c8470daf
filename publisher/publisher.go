package publisher

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/lua"
)

// keptBuffer is the largest encoding buffer that is kept for the next message; one huge message must not
// occupy memory for ever.
const keptBuffer = 64 << 10

// store is what a Publisher needs of either layout. Publish stores all bodies or none, and is sent once.
// PublishIn only queues commands.
type store interface {
	Publish(ctx context.Context, bodies []string) error
	PublishIn(ctx context.Context, pipe redis.Pipeliner, bodies []string) error
}

// Publisher publishes to one queue. It is safe for concurrent use, holds no connection of its own and needs
// no closing.
type Publisher struct {
	queue  string // logical name
	key    string // of the ready list, for errors
	store  store
	group  *group    // joins single messages
	zset   *lua.Zset // the same store, nil in the legacy layout
	logger *slog.Logger

	warned  atomic.Bool // that headers are dropped (F4)
	buffers sync.Pool   // *[]byte to encode a message into
	chunks  sync.Pool   // *chunk to make a batch's commands in
}

// New makes a Publisher. It checks the config (ErrConfig), without talking to Redis.
func New(cfg Config) (*Publisher, error) { return newPublisher(cfg, nil) }

// newPublisher is New with a clock for tests of the scores; nil is the server's own (R2).
func newPublisher(cfg Config, now func() string) (*Publisher, error) {
	keys, err := cfg.keys()
	if err != nil {
		return nil, err
	}
	p := &Publisher{queue: cfg.Queue, key: keys.Ready, logger: cfg.Logger}
	if p.logger == nil {
		p.logger = slog.Default()
	}
	p.buffers.New = func() any { return new([]byte) }
	p.chunks.New = func() any { return new(chunk) }
	o := lua.Options{Client: cfg.Client, Keys: keys, Now: now}
	if cfg.Layout == Zset {
		p.zset = lua.NewZset(o)
		p.store = p.zset
	} else {
		p.store = lua.NewLegacy(o)
	}
	p.group = newGroup(p.send)
	return p, nil
}

// Publish stores one message at the tail of the queue (E2, L1, Z1) and returns its meta.id.
//
// The data becomes one JSON object, as envelope.New says; nil is {}. The id is returned beside an error as
// well, unless the error is ErrEncode: a caller that tries again passes it with WithID. What an error says
// about the message is in the package's documentation.
//
// Messages published from several goroutines at the same time share commands, without waiting for one another
// longer than one command takes. A context that ends meanwhile gives ErrNotSent; once a command is away, its
// outcome is waited for. That wait is bounded by the client's timeouts and, for a message that went alone, by
// the context's deadline where the client honours it (ContextTimeoutEnabled).
func (p *Publisher) Publish(ctx context.Context, urn string, data any, opts ...Option) (string, error) {
	id, body, err := p.encode(urn, data, opts)
	if err != nil {
		return "", err
	}
	if err := ended(ctx); err != nil {
		return id, err
	}
	return id, p.group.publish(ctx, body)
}

// encode makes a message's id and body.
func (p *Publisher) encode(urn string, data any, opts []Option) (id, body string, err error) {
	e, err := envelope.New(urn, p.queue, data, opts...)
	if err != nil {
		return "", "", encodeError(err)
	}
	return e.Meta.ID, p.text(&e), nil
}

// text is e.Encode() with a buffer that is used again.
func (p *Publisher) text(e *envelope.Envelope) string {
	buf := p.buffers.Get().(*[]byte)
	*buf = e.AppendTo((*buf)[:0])
	body := string(*buf)
	if cap(*buf) <= keptBuffer {
		p.buffers.Put(buf)
	}
	return body
}

// send stores bodies with one command.
func (p *Publisher) send(ctx context.Context, bodies ...string) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if err := p.store.Publish(ctx, bodies); err != nil {
		return p.failed(err)
	}
	return nil
}
