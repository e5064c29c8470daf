//go:build unix

package redisproc

import (
	"os"
	"syscall"
)

// askToEnd also wakes the process, because one that is frozen would never see the request.
func askToEnd(p *os.Process) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.Signal(syscall.SIGCONT)
}

func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
