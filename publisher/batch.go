package publisher

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/babelpool/babelpool/envelope"
)

// Limits of one command of a batch. A command of 100,000 messages would hold up every other client of the
// server while it is read and run, and scripts cannot unpack more than 7,999 values (B37).
const (
	chunkMessages = 1000
	chunkBytes    = 1 << 20 // of bodies; a larger body goes alone
)

// Message is one message of a batch.
type Message struct {
	// URN names the kind of message; required (E2).
	URN string

	// Data becomes one JSON object, as envelope.New says. Defaults to {}.
	Data any

	// ID is meta.id. Defaults to a new UUIDv4.
	ID string

	// TraceID is trace_id. Defaults to a new UUIDv4.
	TraceID string

	// Headers are stored as by PublishWithHeaders: in the legacy layout only. Defaults to none.
	Headers map[string]string
}

// Result is what became of one message of a batch.
type Result struct {
	// ID is the message's meta.id; empty when no envelope was made, which is so for ErrEncode and for most of
	// what was not sent.
	ID string

	// Err is nil when the message is stored.
	Err error
}

// PublishBatch stores messages in their order and returns one result for each, in the same order.
//
// They go out one command after the other, each with at most 1,000 messages and about 1 MiB of bodies; a
// command stores all of its messages or none. A message that cannot be encoded gets its ErrEncode and does
// not hinder the others.
//
// For meta.created_at the clock is read when the batch begins and after each command.
//
// When a command fails, each of its messages gets its error, and the batch ends there: the messages behind it
// are ErrNotSent. Going on would let them overtake those that failed, and would wait for a server that is
// away once per command.
//
// The error is nil when every message is stored. Else it counts those that are not, and wraps the failed
// command's error, or, when none failed, that of the first message that could not be encoded.
func (p *Publisher) PublishBatch(ctx context.Context, messages []Message) ([]Result, error) {
	results := make([]Result, len(messages))
	b := batch{publisher: p, messages: messages, results: results, chunk: p.chunks.Get().(*chunk)}
	failure := b.run(ctx)
	p.keep(b.chunk)
	return results, b.summary(failure)
}

// batch is one PublishBatch under way.
type batch struct {
	publisher *Publisher
	messages  []Message
	results   []Result
	*chunk
}

// chunk is a command in the making. Bodies are put one behind the other into a single string that is then cut
// up, so that a message costs no allocation for its text. All but that string serves one chunk, and one batch,
// after the other: growing it anew costs a good part of a batch's time.
type chunk struct {
	writer *envelope.Writer
	fresh  envelope.Fresh // the message that is encoded now

	text    strings.Builder
	members []member
	bodies  []string
}

// member is a message of the chunk in the making: its place in the batch, and where its body ends in text.
type member struct{ message, end int }

// keep puts a chunk away for the next batch, without what it holds of this one.
func (p *Publisher) keep(c *chunk) {
	c.fresh = envelope.Fresh{}
	clear(c.bodies[:cap(c.bodies)])
	p.chunks.Put(c)
}

// run sends the chunks until one fails and returns that one's error.
func (b *batch) run(ctx context.Context) error {
	b.fresh.CreatedAt = time.Now().UnixMilli()
	for i := range b.messages {
		body, err := b.encode(i)
		if err != nil {
			b.results[i].Err = err
			continue
		}
		if len(b.members) > 0 && b.text.Len()+len(body) > chunkBytes {
			if err := b.flush(ctx); err != nil {
				b.abandon(i)
				return err
			}
		}
		if len(b.members) == 0 {
			b.reserve(len(body), len(b.messages)-i)
		}
		b.text.Write(body)
		b.members = append(b.members, member{i, b.text.Len()})
		if len(b.members) == chunkMessages {
			if err := b.flush(ctx); err != nil {
				b.abandon(i + 1)
				return err
			}
		}
	}
	return b.flush(ctx)
}

// reserve makes room for a chunk, whose first body has this size, in a batch that has so many messages left:
// mostly they are alike. Text that grows is copied each time.
func (c *chunk) reserve(first, left int) {
	all := (first + first/8) * min(left, chunkMessages)
	c.text.Grow(max(first, min(all, chunkBytes)))
}

// encode makes the body of a message, which is valid until the next, and notes its id.
func (b *batch) encode(i int) ([]byte, error) {
	m, f := &b.messages[i], &b.fresh
	f.URN, f.Data, f.ID, f.TraceID = m.URN, m.Data, m.ID, m.TraceID
	if strings.TrimSpace(f.ID) == "" {
		f.ID = b.writer.NewID()
	}
	body, err := b.writer.Text(f)
	if err != nil {
		return nil, encodeError(err)
	}
	b.results[i].ID = f.ID
	if len(m.Headers) > 0 {
		body = []byte(b.publisher.frame(string(body), m.Headers))
	}
	return body, nil
}

// flush sends the members.
func (b *batch) flush(ctx context.Context) error {
	if len(b.members) == 0 {
		return nil
	}
	all, from := b.text.String(), 0
	b.bodies = b.bodies[:0]
	for _, m := range b.members {
		b.bodies = append(b.bodies, all[from:m.end])
		from = m.end
	}
	err := b.publisher.send(ctx, b.bodies...)
	if err != nil {
		for _, m := range b.members {
			b.results[m.message].Err = err
		}
	}
	b.text.Reset()
	b.members = b.members[:0]
	b.fresh.CreatedAt = time.Now().UnixMilli()
	return err
}

// abandon marks the messages from one on as not sent.
func (b *batch) abandon(from int) {
	for i := from; i < len(b.results); i++ {
		b.results[i].Err = errBehindFailure
	}
}

// summary is the error of the whole, given that of the chunk that failed.
func (b *batch) summary(cause error) error {
	failed := 0
	for i := range b.results {
		if b.results[i].Err == nil {
			continue
		}
		failed++
		if cause == nil {
			cause = b.results[i].Err
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("publisher: %d of %d messages of the batch failed: %w", failed, len(b.results), cause)
}
