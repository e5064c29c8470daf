// Package idempotency keeps a message that is delivered twice from being handled twice. It is middleware: nothing of it is
// in a program that does not import it.
//
//	seen, err := idempotency.NewRedis(idempotency.RedisConfig{Client: rdb, TTL: 24 * time.Hour})
//	...
//	mux.Use(idempotency.Middleware(idempotency.Config{Store: seen}))
//
// In flow deliveries and what handlers return; out flows the same, but for a message whose meta.id is remembered: its handler
// does not run, and it is acked. A message is remembered once its handler has returned nil. What fails, panics, or is
// dead-lettered is not, so it runs again when it comes again. A message without an id always runs.
//
// # What it promises
//
// At least once becomes, nearly always, once. Two gaps remain, and handlers whose effects must not double close them by
// making the effect and a note of meta.id one transaction of their own database:
//
//   - A process that dies, or a store that fails, between the handler's success and the note: the next delivery runs.
//   - Two deliveries of one message at the same time: both look before either has a note. Config.Claims closes this one,
//     but for a worker that is cut off or frozen for longer than ClaimExpiry: its claim runs out while its handler runs.
//
// The notes of Redis are the ones other SDKs of the contract write and read. It never looks at a message's body, and never
// acks what has neither been handled nor is remembered.
package idempotency
