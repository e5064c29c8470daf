package publisher

import (
	"context"
	"fmt"

	"github.com/babelpool/babelpool/envelope"
)

// PublishEnvelope stores a message whose envelope is made already, as a relay from one queue to another does.
// It is encoded as it stands, unknown keys included (E4), but for forbidden ones (E5): attempts, meta.queue
// and a dead letter record are the caller's business. One that no consumer would accept (E3) is ErrEncode.
func (p *Publisher) PublishEnvelope(ctx context.Context, e envelope.Envelope) error {
	body := e.Encode()
	if _, err := envelope.Decode(body); err != nil {
		return encodeError(err)
	}
	return p.group.publish(ctx, body)
}

// PublishRaw stores texts as they are, frames and other than envelopes too, without a look into them. It is
// for tools that restore, replay or generate load.
//
// They go out in the chunks of PublishBatch. The result is how many of them, from the first, are stored for
// certain. The error is that of the chunk behind those; what comes after it was not sent.
func (p *Publisher) PublishRaw(ctx context.Context, texts []string) (stored int, err error) {
	for stored < len(texts) {
		n := nextChunk(texts[stored:])
		if err := p.send(ctx, texts[stored:stored+n]...); err != nil {
			return stored, fmt.Errorf("publisher: texts %d to %d of %d: %w", stored+1, stored+n, len(texts), err)
		}
		stored += n
	}
	return stored, nil
}

// nextChunk is how many of the texts go into one command, at least one.
func nextChunk(texts []string) int {
	bytes := 0
	for n, text := range texts {
		bytes += len(text)
		if n > 0 && (n == chunkMessages || bytes > chunkBytes) {
			return n
		}
	}
	return len(texts)
}
