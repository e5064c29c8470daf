package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelpool/babelpool/internal/testredis"
)

// running is the command as a process of its own.
type running struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// startCommand starts a run with three consumers that have much to do.
func startCommand(t *testing.T, b backend, flags string) *running {
	t.Helper()
	r := &running{}
	args := strings.Fields("-processes 3 -messages 30000 -handler-time 20ms -concurrency 4 -json - -redis " + b.url + " " + flags)
	r.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	r.cmd.Env = append(os.Environ(), envCommand+"=1")
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
	b.someSettled(t, 50)
	return r
}

// consumers are the pids of the run's consumers.
func (r *running) consumers(t *testing.T) []int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	if len(pids) != 3 {
		t.Fatalf("consumers %v, want 3", pids)
	}
	return pids
}

// noneLeft waits for the processes to be gone.
func noneLeft(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		testredis.Eventually(t, 10*time.Second, func() bool {
			// A zombie counts as gone: nobody may be there to reap it.
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err != nil || bytes.Contains(stat, []byte(") Z "))
		}, "process %d is still there", pid)
	}
}

// end waits for the command and returns its code and report.
func (r *running) end(t *testing.T) (code int, rep report) {
	t.Helper()
	_ = r.cmd.Wait() // the code tells
	if err := json.Unmarshal(r.stdout.Bytes(), &rep); err != nil {
		t.Fatalf("%v: no report\n%s\n%s", err, &r.stdout, &r.stderr)
	}
	return r.cmd.ProcessState.ExitCode(), rep
}

// A process that is killed fails the run, and the books are closed all the same: what it had acked is acked,
// what it held is in flight, and nothing is lost.
func TestAKilledProcess(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"-layout legacy", "-layout zset"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			b := realBackend(t)
			r := startCommand(t, b, flags)
			pids := r.consumers(t)
			if err := syscall.Kill(pids[1], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			code, rep := r.end(t)
			if code != exitFailed || !rep.Reconciled || rep.Lost != 0 || rep.LeftInFlight == 0 || rep.LeftInFlight > 16 ||
				rep.Acked+rep.LeftInFlight+rep.LeftReady != rep.Published {
				t.Errorf("code %d\n%s\n%s", code, &r.stdout, &r.stderr)
			}
			if want := fmt.Sprintf("(pid %d) died: signal: killed", pids[1]); !strings.Contains(r.stderr.String(), want) {
				t.Errorf("stderr does not say %q:\n%s", want, &r.stderr)
			}
			noneLeft(t, pids)
		})
	}
}

// A signal to all processes at once, as a terminal sends it, drains.
func TestASignalToAllProcesses(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			b := realBackend(t)
			r := startCommand(t, b, "")
			pids := r.consumers(t)
			for _, pid := range append(pids, r.cmd.Process.Pid) {
				if err := syscall.Kill(pid, signal); err != nil {
					t.Fatal(err)
				}
			}
			code, rep := r.end(t)
			if code != exitBalanced || !rep.Reconciled || rep.LeftInFlight != 0 || rep.LeftReady == 0 || rep.Acked == 0 {
				t.Errorf("code %d\n%s\n%s", code, &r.stdout, &r.stderr)
			}
			noneLeft(t, pids)
		})
	}
}

func TestNoProcessOutlivesTheRun(t *testing.T) {
	t.Parallel()
	b := realBackend(t)
	r := startCommand(t, b, "")
	pids := r.consumers(t)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.cmd.Wait() // it was killed
	noneLeft(t, pids)
}
