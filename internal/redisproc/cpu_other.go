//go:build !linux

package redisproc

import "time"

// processCPU has no /proc to read here; the server is asked instead.
func processCPU(int) (time.Duration, error) { return 0, ErrUnsupported }
