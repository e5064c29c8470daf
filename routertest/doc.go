// Package routertest tests handlers and middleware without Redis.
//
// Delivery makes what a handler gets, for a test that calls the handler itself. A Kit runs messages the way a pool does,
// by the same router: they are decoded, dispatched, run under a handler's context, and what becomes of them is decided
// by the pool's policy. The Outcome says what that was: acked, failed and delayed, dead-lettered and why, and how the
// message comes back. pool.Config.Policy gives the policy of a config, so that a test tries what will run.
//
// In: a handler, a policy, messages. Out: outcomes. The package keeps no state between messages and talks to nobody; what
// Redis does, which is to store texts and raise attempts at reserve (Z3), is all that it stands in for. In a
// testing/synctest bubble timeouts pass at once.
package routertest
