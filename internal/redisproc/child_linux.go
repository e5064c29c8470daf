package redisproc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// setAttributes makes the kernel kill the child when the parent's starting thread ends. The child
// gets a process group of its own, so that an interrupt from the terminal ends the parent's work
// first, while the server is still there to drain to.
func setAttributes(cmd *exec.Cmd) {
	// SIGKILL, not SIGTERM: it also ends a server that is frozen or busy in a script.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// freezeLimit bounds the wait for a stop that the kernel normally completes in microseconds.
const freezeLimit = time.Second

// freeze returns once the process has really stopped: after SIGSTOP it may still run for a moment,
// long enough to answer one more command and so to upset a test.
func freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	ticker := time.NewTicker(200 * time.Microsecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(freezeLimit); ; <-ticker.C {
		fields, err := statFields(p.Pid)
		if err != nil {
			return err
		}
		if fields[0][0] == 'T' {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redisproc: process %d did not stop within %v", p.Pid, freezeLimit)
		}
	}
}

// statFields returns the fields of /proc/<pid>/stat from the third one, the state, on. The second
// is the name in parentheses, which may hold spaces and parentheses itself.
func statFields(pid int) ([][]byte, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return nil, fmt.Errorf("redisproc: unexpected form of /proc/%d/stat", pid)
	}
	return fields, nil
}
