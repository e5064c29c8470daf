package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// namelessFile is memory alone. It is not bounded by the size of /tmp or /dev/shm, and never written to a disk
// whose pace would be in the results.
func namelessFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("loadtest-books", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "loadtest-books"), nil
}
