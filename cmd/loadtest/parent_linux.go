package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the process when the thread that started it is gone, however that came.
// The end of its stdin, which ends it everywhere, it may be too busy to notice at once.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
