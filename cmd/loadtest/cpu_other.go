//go:build !unix

package main

import "time"

// ownCPU is not known here.
func ownCPU() (used time.Duration, ok bool) { return 0, false }
