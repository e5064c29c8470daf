// Package testredis gives tests a Redis to work on.
//
// Three kinds are on offer: [Mini], an in-process imitation that needs nothing but Go; [Shared], one
// real server for a whole test binary, where every test keeps to its own [Prefix]; and [Server], a
// real one of its own for a test that kills, freezes, fills or measures it. [Each] runs one test
// body on the first two.
//
// A test that needs the real server skips with a reason where none is installed. With
// BQ_REQUIRE_REDIS=1 in the environment it fails instead, so that a skip cannot hide in CI. With
// BQ_REDIS_URL the shared server is the one at that address, which is used with care: only keys
// under a test's prefix are touched, and Each removes them again.
//
// A package that uses this one calls [Main] from its TestMain. Main stops the shared server and then
// looks for goroutines left behind; nothing is exempt from that.
//
// The package is for tests alone and knows nothing of queues, layouts or keys.
package testredis
