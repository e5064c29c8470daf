// Package pool is the face of babelpool: it consumes BabelQueue messages from Redis with a pipeline of
// actors.
//
//	reserver ──▶ bounded buffer ──▶ N workers ──▶ bounded channel ──▶ acker
//	    (one per queue)                               (one per queue)
//
// with a scheduler beside that renews leases. Pool makes what is between them, starts the actors, and decides who
// stops when; it holds no message logic. A Pool delivers at least once, in no promised order, and never stops
// on a bad message or a Redis fault (R1).
package pool
