package shard

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/babelpool/babelpool/publisher"
)

// block is how many messages of a batch without a key go to the same shard: one by one a batch would become as many
// small commands as there are shards, and whole it would leave the others idle.
const block = 256

// rawBlock is the same for texts. They go out one block after the other, each in one command.
const rawBlock = 1000

// PublishBatch stores messages and returns one result for each, in the order of the messages.
//
// Each shard gets its part of the batch by publisher.PublishBatch, all at the same time, so what is promised there
// holds within each shard: the order, and that a command that fails ends that shard's part. Other shards go on. Messages
// without a key go in turn by blocks of 256.
//
// The error is nil when every message is stored, else a *BatchError. PublishBatch has returned only when no shard works
// on it any more.
func (p *Publisher) PublishBatch(ctx context.Context, messages []publisher.Message) ([]publisher.Result, error) {
	parts := p.split(messages)
	results := make([]publisher.Result, len(messages))
	failures := make([]error, len(p.shards))
	var group errgroup.Group
	for i, part := range parts {
		if len(part) == 0 {
			continue
		}
		group.Go(func() error {
			failures[i] = p.part(ctx, i, part, messages, results)
			return nil
		})
	}
	_ = group.Wait() // failures has them all
	failed := BatchError{}
	for _, err := range failures {
		if err != nil {
			failed.Shards = append(failed.Shards, err)
		}
	}
	if len(failed.Shards) == 0 {
		return results, nil
	}
	failed.count(results)
	return results, &failed
}

// split gives each shard its messages, as numbers in the batch.
func (p *Publisher) split(messages []publisher.Message) [][]int {
	parts := make([][]int, len(p.shards))
	keyless, turn := 0, 0
	for i := range messages {
		key := p.keyOf(messages[i])
		if key == "" {
			if keyless%block == 0 {
				turn = p.next()
			}
			keyless++
			parts[turn] = append(parts[turn], i)
			continue
		}
		shard := Of(key, len(p.shards))
		parts[shard] = append(parts[shard], i)
	}
	return parts
}

// part publishes a shard's messages and puts their results in their places, which no other part touches.
func (p *Publisher) part(
	ctx context.Context, shard int, part []int, messages []publisher.Message, results []publisher.Result,
) error {
	mine := make([]publisher.Message, len(part))
	for i, number := range part {
		mine[i] = messages[number]
	}
	got, err := p.shards[shard].PublishBatch(ctx, mine)
	for i, number := range part {
		results[number] = got[i]
	}
	return err
}

// PublishRaw stores texts as they are, as publisher.PublishRaw does: in their order, in turn by blocks of 1,000. No key is
// looked for. The result is how many of them, from the first, are stored for certain; the error is that of the block
// behind those, and what comes after it was not sent.
func (p *Publisher) PublishRaw(ctx context.Context, texts []string) (stored int, err error) {
	for stored < len(texts) {
		n, err := p.shards[p.next()].PublishRaw(ctx, texts[stored:min(stored+rawBlock, len(texts))])
		stored += n
		if err != nil {
			return stored, fmt.Errorf("shard: %d of %d texts are stored: %w", stored, len(texts), err)
		}
	}
	return stored, nil
}
