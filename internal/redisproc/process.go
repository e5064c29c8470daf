package redisproc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// process is one run of the binary. A server that is restarted has several, one after the other.
type process struct {
	cmd      *exec.Cmd
	logPath  string
	logStart int64         // where this run's lines begin in the log
	exited   chan struct{} // closed when the process is gone and reaped
	keeper   errgroup.Group
}

// launch starts the binary in dir with its output appended to logPath.
//
// The kernel's promise to kill the child when the parent dies (see setAttributes) is in truth tied
// to the parent's *thread* that started it, and the Go runtime ends a thread when a goroutine that
// is locked to it returns. So the child is started on a thread that its keeper goroutine has locked
// and holds until the child is gone: nobody else can end that thread early.
func launch(binary string, args []string, dir, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // #nosec G304 -- the caller's own directory
	if err != nil {
		return nil, fmt.Errorf("redisproc: opening the log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the child has its own copy
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("redisproc: opening the log: %w", err)
	}

	// Not CommandContext: the server lives until Stop, whatever becomes of the caller's context.
	cmd := exec.Command(binary, args...) //nolint:noctx,gosec // see above; found on PATH by its fixed name
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log // a file, not a pipe: nothing to copy, nothing to block on
	setAttributes(cmd)

	p := &process{cmd: cmd, logPath: logPath, logStart: info.Size(), exited: make(chan struct{})}
	started := make(chan error, 1)
	p.keeper.Go(func() error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := cmd.Start()
		started <- err
		if err != nil {
			return nil // reported through started
		}
		return cmd.Wait()
	})
	if err := <-started; err != nil {
		_ = p.keeper.Wait() // nil by construction
		return nil, fmt.Errorf("redisproc: starting %s: %w", binary, err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// terminate asks the process to end, forces it after grace, and returns when it is gone.
func (p *process) terminate(grace time.Duration) error {
	if err := askToEnd(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return p.kill()
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		_ = p.keeper.Wait() // how it ended does not matter, it was told to
		return nil
	case <-timer.C:
		return p.kill()
	}
}

// kill ends the process at once and returns when it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("redisproc: killing process %d: %w", p.pid(), err)
	}
	_ = p.keeper.Wait() // always "signal: killed"
	return nil
}

// maxLogTail is how much of the log goes into an error. The reason for a failed start is in the
// last few lines.
const maxLogTail = 2 << 10

// logTail returns the last lines of this run, indented, or "" when there are none.
func (p *process) logTail() string {
	f, err := os.Open(p.logPath)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(p.logStart, info.Size()-maxLogTail)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-8):]
	return "\t" + strings.Join(lines, "\n\t")
}
