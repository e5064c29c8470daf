package publisher

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
)

// discard is a client hook in place of a server, so that the benchmarks see the client's side alone.
type discard struct{}

func (discard) DialHook(redis.DialHook) redis.DialHook {
	return nil
}

func (discard) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return nil }
}

func (discard) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type benchData struct {
	OrderID int64    `json:"order_id"`
	Name    string   `json:"name"`
	Lines   []string `json:"lines"`
}

func benchPublisher(b *testing.B, layout Layout) *Publisher {
	b.Helper()
	client := redis.NewClient(&redis.Options{})
	client.AddHook(discard{})
	b.Cleanup(func() { _ = client.Close() })
	p, err := New(Config{Client: client, Queue: "orders", Layout: layout})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	return p
}

var benchMessage = Message{
	URN: "urn:babel:orders:created", Data: benchData{1042, "a name of some length", []string{"a", "b", "c"}},
}

// BenchmarkPublish is one message up to the client library.
func BenchmarkPublish(b *testing.B) {
	for _, layout := range []Layout{Legacy, Zset} {
		b.Run(layout.String(), func(b *testing.B) {
			p := benchPublisher(b, layout)
			for b.Loop() {
				if _, err := p.Publish(b.Context(), benchMessage.URN, benchMessage.Data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPublishBatch is 1,000 messages up to the client library.
func BenchmarkPublishBatch(b *testing.B) {
	batch := make([]Message, chunkMessages)
	for i := range batch {
		batch[i] = benchMessage
	}
	for _, layout := range []Layout{Legacy, Zset} {
		b.Run(layout.String(), func(b *testing.B) {
			p := benchPublisher(b, layout)
			for b.Loop() {
				results, err := p.PublishBatch(b.Context(), batch)
				if err != nil || results[len(results)-1].ID == "" {
					b.Fatal(errors.Join(err, errors.New("no id")))
				}
			}
		})
	}
}
