package publisher

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// PublishIn queues the message on a transaction or pipeline of the caller's own and returns its meta.id.
//
// Nothing is sent before the caller's Exec, and nothing at all after Discard. An error of PublishIn itself
// is ErrEncode. Whether the message is stored, Exec says: nil is yes, a reply of the server (a redis.Error)
// to the whole, such as EXECABORT, is no, and any other error means that it may have been stored.
//
// Use TxPipeline: the zset layout needs two commands, and only a MULTI makes them one step. There is no
// rollback in Redis: when one command of a transaction fails on its key, such as one of another type, the
// others stay done. On a cluster the caller's keys must share the queue's slot, or a plain pipeline is all
// there is.
//
// The commands keep the client library from sending the pipeline again after a failure, the caller's part
// included, since a second sending could store the message twice (B03).
func (p *Publisher) PublishIn(
	ctx context.Context, pipe redis.Pipeliner, urn string, data any, opts ...Option,
) (string, error) {
	id, body, err := p.encode(urn, data, opts)
	if err != nil {
		return "", err
	}
	if err := p.store.PublishIn(ctx, pipe, []string{body}); err != nil {
		return id, p.failed(err)
	}
	return id, nil
}
