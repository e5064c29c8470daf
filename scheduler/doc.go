// Package scheduler does what must happen by the clock, beside the path of the messages: it renews leases,
// returns expired and due messages to ready while no reserver does it, has a paused queue's messages handed back, audits
// in-flight lists, and keeps dead letters within their limits.
//
// In: the Books of the queues. Out: calls of their Stores; lost reservations marked as such. Renewal has loops
// of its own, so that nothing slow delays it. The package moves no message of its own accord, and discards none but dead
// letters beyond a limit the user has set.
package scheduler
