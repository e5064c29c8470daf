// Package batch hands several messages to a handler at once: for work that is cheaper together, such as inserting rows. It is a
// handler like any other, and linked only when it is imported.
//
//	mux.Register("urn:babel:orders:created", batch.Typed(batch.Config{Size: 200, Wait: 50 * time.Millisecond},
//		func(ctx context.Context, orders []*batch.Item[Order]) error {
//			return insert(ctx, orders) // nil acks all of them
//		}))
//
// Each message has its own outcome: Message.Done says it, as a handler's return value would. What the function returns is the
// outcome of those for which Done was not called. A function that panics, or calls runtime.Goexit, has done so for all of these.
//
// # How a batch comes about
//
// A batch runs when it has Size messages, or Wait after its first. A message waits for it in its worker, so a batch can only be
// as large as the pool's Concurrency: give the pool twice Size workers at least, so that one batch fills while another runs.
// Several batches may run at once. The leases of messages that wait are renewed like those of any that run, and HandlerTimeout
// counts the wait. When the pool stops, an open batch still runs, after Wait at most.
//
// Messages whose time is over before their batch has begun leave it. The function's context carries the values of the first
// message's, and ends when those of all its messages have ended; at a hard stop they end together.
package batch
