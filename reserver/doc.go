// Package reserver takes messages out of Redis: one actor per queue asks for as many as there are free slots,
// and blocks on the queue while it is empty.
//
// In: free slots, and the answers of its Store. Out: reservations in the buffer, which has room for
// all of them; leases in the Book. It never looks into a message, and it never gives up: Redis faults are
// retried until its context ends. When the reply of a reserve is lost, it looks for the messages that call may have
// taken before it reserves more (B03).
package reserver
