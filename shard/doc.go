// Package shard spreads one busy queue over several queues, its shards, so that a cluster's masters share its work.
//
// A queue is one list, and all of its keys lie in one slot (R3): whatever the cluster's size, one master does all of
// its work. N shards are N ordinary queues whose names differ in their hash tag. The package owns three things:
//
//   - their names: [Names] puts shard i in the middle of the i-th of n equal ranges of slots;
//   - a [Publisher] with the methods of publisher.Publisher, which gives each message to one shard, in turn or by a
//     key ([Of]);
//   - what one pool needs to consume them all and to show them as one queue: [Queues], [Sum], [SumDepths].
//
// In flow messages as for package publisher; out flow the same commands on other queues. A shard is a queue like any
// other: other SDKs publish to it, pools consume it, and a message's meta.queue is the shard's name.
//
// # What it never does
//
// It moves no message from one shard to another, not when their number changes either, sends nothing twice, and puts
// no message in another shard than the one chosen for it because that one fails. It promises no order, with a key
// neither.
package shard
