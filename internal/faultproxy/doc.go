// Package faultproxy stands between a client under test and a Redis server, passes everything on, and on
// request does what networks do: swallow a reply, hold everything back, add delay, cut connections,
// refuse new ones.
//
// Bytes flow in from clients and out to the target, and back. On the way the proxy reads both sides
// as RESP, so that it knows which reply belongs to which command: replies are matched by order, push
// messages belong to none, and an attribute belongs to the value behind it. It keeps every command
// it saw, inside pipelines too, for tests that count what a client really sends.
//
// It never changes a byte, and never makes up a reply. It does not follow connections whose replies
// do not pair up with commands: publish/subscribe, MONITOR and CLIENT REPLY OFF.
//
// The package is for tests, and for load tests with faults.
package faultproxy
