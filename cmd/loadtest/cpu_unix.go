//go:build unix

package main

import (
	"syscall"
	"time"
)

// ownCPU is the CPU time, user and system, that this process has used so far; ok is false where it is not
// known.
func ownCPU() (used time.Duration, ok bool) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}
