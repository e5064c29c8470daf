package publisher

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/babelpool/babelpool/envelope"
	"github.com/babelpool/babelpool/lua"
)

// typicalBody is what most bodies fit into.
const typicalBody = 512

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
	writers sync.Pool   // *envelope.Writer
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
	p.writers.New = func() any { return envelope.NewWriter(p.queue) }
	p.chunks.New = func() any { return &chunk{writer: envelope.NewWriter(p.queue)} }
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
	w := p.writers.Get().(*envelope.Writer)
	id, body, err := p.write(w, urn, data, opts)
	if err != nil {
		p.writers.Put(w)
		return "", err
	}
	if err := ended(ctx); err != nil {
		p.writers.Put(w)
		return id, err
	}
	c, place := p.group.join(body)
	p.writers.Put(w)
	return id, p.group.outcome(ctx, c, place)
}

// write makes a message's id and body, which is valid until the next use of w.
func (p *Publisher) write(
	w *envelope.Writer, urn string, data any, opts []Option,
) (id string, body []byte, err error) {
	if len(opts) == 0 {
		m := envelope.Fresh{URN: urn, Data: data, ID: w.NewID(), CreatedAt: time.Now().UnixMilli()}
		if body, err = w.Text(&m); err != nil {
			return "", nil, encodeError(err)
		}
		return m.ID, body, nil
	}
	e, err := envelope.New(urn, p.queue, data, opts...)
	if err != nil {
		return "", nil, encodeError(err)
	}
	return e.Meta.ID, e.AppendTo(make([]byte, 0, typicalBody)), nil
}

// encode makes a message's id and body.
func (p *Publisher) encode(urn string, data any, opts []Option) (id, body string, err error) {
	w := p.writers.Get().(*envelope.Writer)
	id, text, err := p.write(w, urn, data, opts)
	body = string(text)
	p.writers.Put(w)
	return id, body, err
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
