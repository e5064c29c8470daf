// Package limit keeps handlers from running too many at once, or too often. It is middleware: nothing of it is in a program
// that does not import it.
//
//	mux.Register("urn:babel:mails:send", limit.Rate(50, 10)(sendMail))        // 50 a second, 10 at once after a pause
//	mux.Register("urn:babel:reports:build", limit.Concurrency(2)(buildReport)) // two at a time
//
// A limit belongs to the middleware that Concurrency or Rate has made: handlers that are wrapped by the same one share it.
// ByURN gives each URN its own in one place. Limits are of one process: with P processes, and messages spread over all, the
// whole is P times as much.
//
// # What becomes of a message over the limit
//
// It waits in its worker for MaxWait, a second unless set, since its turn may be near. Beyond that it is put off
// (delivery.Postpone): its worker and its place in the pool are free, it is charged no attempt, and it is no failure. It comes
// back when its turn should be there, after whole seconds.
//
// A message that waits keeps a worker from other work: where a limited URN shares a pool with others, give the pool more
// workers than the limits let run, or set a short MaxWait. A short MaxWait with handlers that are quick costs throughput: who
// has just missed a place comes back a second later.
//
// Put limits inside of what looks on (logging, tracing) and outside of what the wait should not count for, as a
// router.Timeout or a claim of package idempotency. The pool's HandlerTimeout does count the wait.
package limit
