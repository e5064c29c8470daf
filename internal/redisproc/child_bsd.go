//go:build unix && !linux

package redisproc

import (
	"os"
	"os/exec"
	"syscall"
)

// setAttributes leaves the child in the parent's process group: these systems have no signal on the
// parent's death, and in one group an interrupt from the terminal at least ends both.
func setAttributes(*exec.Cmd) {}

func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
