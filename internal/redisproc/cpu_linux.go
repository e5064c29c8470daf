package redisproc

import (
	"fmt"
	"strconv"
	"time"
)

// tick is the unit of CPU time in /proc: the kernel's USER_HZ, which is 100 on every Linux port of
// Go.
const tick = time.Second / 100

// processCPU reads the kernel's account of the process, which includes its background threads and
// costs the server itself nothing.
func processCPU(pid int) (time.Duration, error) {
	fields, err := statFields(pid)
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("redisproc: CPU time of process %d: %w", pid, err)
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}
