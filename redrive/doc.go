// Package redrive works on dead letters: it lists them, sends them back to a queue, removes them, and keeps them in a file.
//
//	dead, err := redrive.Open(redrive.Config{Client: rdb, Queue: "orders"})
//	report, err := dead.Redrive(ctx, redrive.Filter{URN: "urn:babel:orders:created"}, redrive.Options{})
//
// In flow records of a queue's dead letters (D2); out flow messages in ready lists. A record goes back without its
// dead_letter block and with attempts 0, and every other byte as it is. A run looks at the dead letters that were there when
// it began, a window at a time, whatever their number; consumers may go on meanwhile, and what fails again is added
// behind. A run that is cut off has lost nothing, and the next one goes on.
//
// Where a record's key and the target's are on one server, or in one slot of a cluster, both change in one step. Else the
// message is published first and then removed, so that a run that dies between the two leaves it in both places.
//
// The package never decides by itself that a message is worth a retry.
package redrive
