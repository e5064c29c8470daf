// Package acker carries settlements out: one actor per queue takes what has piled up while its last call was
// away, sends it to Redis as one batch, and frees the slots.
//
// In: the queue's channel of settlements, closed by the pool. Out: calls of its Store; freed slots; counters.
// There are no timers: a lone settlement goes out at once, a busy queue fills its own batches. Settlements
// that Redis cannot take now wait here, bounded by the slots, so intake stops by itself.
package acker
