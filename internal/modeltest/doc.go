// Package modeltest checks the stores of package lua against a model: random sequences of calls by several owners of
// one queue, on the imitation of Redis and on a real one, after each of which every key and every result must be what
// a few lines of Go say.
//
// It owns the model of each layout, the machine that draws the sequences, a ledger that knows nothing of the model and
// only counts (every message published is in exactly one place, or was acked), and broken scripts, which the machine
// must catch. All code is in test files; nothing here is for a program. The scripts' own corners stand in package lua's
// tests, whole pools and real crashes in internal/faulttest; redriving is not modelled.
//
// What the rules promise is compared exactly. Compared as a multiset is only what they leave open: which of several
// equal copies leaves processing (L4), and the order of the texts that one settlement pushes in two calls.
//
// The short form runs everywhere; with BQ_STRESS=1 there are many more sequences. To run one again that failed, give
// the flags that the failure prints.
package modeltest
