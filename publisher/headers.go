package publisher

import (
	"context"

	"github.com/babelpool/babelpool/envelope"
)

// PublishWithHeaders is Publish with transport headers, such as traceparent.
//
// In the legacy layout the envelope is stored inside a frame that carries them (F1). Headers with a blank key
// or value are dropped; when none is left the bare envelope is stored. In the zset layout the bare envelope
// is stored always, because a Laravel consumer destroys a frame; a Publisher says so once in its log (F4).
func (p *Publisher) PublishWithHeaders(
	ctx context.Context, headers map[string]string, urn string, data any, opts ...Option,
) (string, error) {
	id, body, err := p.encode(urn, data, opts)
	if err != nil {
		return "", err
	}
	return id, p.group.publish(ctx, p.frame(body, headers))
}

// CarriesHeaders reports whether headers are stored with messages: in the legacy layout they are, in the zset layout not
// (F4).
func (p *Publisher) CarriesHeaders() bool { return p.zset == nil }

// frame is the text to store for a body with headers.
func (p *Publisher) frame(body string, headers map[string]string) string {
	if p.zset == nil {
		return envelope.EncodeFrame(body, headers)
	}
	// Framing nothing tells whether a header survives sanitising; until the warning is out, that is worth it.
	if len(headers) > 0 && !p.warned.Load() && envelope.EncodeFrame("", headers) != "" && !p.warned.Swap(true) {
		p.logger.Warn("the zset layout carries no headers: messages are stored without them (F4)", "queue", p.queue)
	}
	return body
}
