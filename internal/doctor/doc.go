// Package doctor looks at a Redis server and at queues on it for what stops or loses messages, and says for each finding
// what to do about it.
//
// In flows a client and the queues' keys; out flow findings. It only reads, with commands that cost a server nothing to
// speak of, and a check that a user may not make is a finding of its own: nothing here ends a run but a server that does not
// answer. It holds no opinion on how findings are shown.
package doctor
