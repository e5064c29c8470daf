// Package chaos decides what goes wrong in a run with faults, and does it.
//
// In flows a seed; out flow a schedule of faults (which kind, when, with which number drawn) and, message by message,
// what its handler does. Both depend on the seed alone, so a seed repeats them; how processes interleave is up to the
// machine and is not repeated. [Injector] carries a schedule out on a private server, a proxy in front of it and
// whatever the caller has killed, and counts a fault when it has happened, not when it was meant to.
//
// The package never looks at a message and draws no conclusions: whoever runs the load keeps the books.
package chaos
