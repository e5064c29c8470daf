// Package faulttest holds the end-to-end fault tests: a real pool against a real redis-server that is killed,
// frozen, flushed or cut off, and consumers that are killed or stopped in mid-work.
//
// It owns a ledger of what was published and what was handled, read against every key of the queue, and nothing
// that a program could use: all code is in test files. Each test has a short form, and the full form of the
// failure cases with BQ_STRESS=1. Tests named TestSerial… measure time; they are built
// with the tag serial, and without the race detector, and run alone:
//
//	go test -tags serial -run '^TestSerial' ./internal/faulttest
package faulttest
