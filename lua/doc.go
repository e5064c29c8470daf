// Package lua is the only place that knows Redis keys and scripts: one embedded .lua file per state
// change, and a store per layout (Legacy, Zset) that calls them.
//
// Requests and results are the types of internal/flow; errors come out classified as flow.ErrTransient,
// flow.ErrPermanent and flow.ErrAmbiguous. The package never retries a call, starts no goroutine that
// outlives one, and never looks into a message further than its attempts.
//
// Every script checks the types of its keys before its first write, because scripts do not roll back; its
// first write is a removal, because a full server lets such a script finish; and it never runs cjson over a
// body. Fragments that scripts share stand in lib/ and are put before a script by its "@include" line.
package lua
