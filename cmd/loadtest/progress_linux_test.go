package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/babelpool/babelpool/internal/testredis"
)

// screen is a pseudo-terminal and everything that was written to it.
type screen struct {
	tty *os.File

	mu      sync.Mutex
	written bytes.Buffer
}

func newScreen(t *testing.T, columns uint16) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testredis.Missing(t, "no pseudo-terminals here: "+err.Error())
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	s := &screen{}
	if s.tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 25, Col: columns}); err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	g.Go(func() error {
		_, err := io.Copy(s, master)
		return err
	})
	t.Cleanup(func() {
		_ = s.tty.Close()
		_ = g.Wait() // EIO, as always when the other side is closed
		_ = master.Close()
	})
	return s
}

// Write takes what the terminal was sent.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.Write(b)
}

// String is everything so far.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.String()
}

func TestTheBarOnATerminal(t *testing.T) {
	t.Parallel()
	for columns, wanted := range map[uint16][]string{
		100: {" 25% [", "settled  2,500 of 10,000", "msg/s", "waiting for 7,500 more"},
		80:  {" 25% [", "settled  2,500 of 10,000", "msg/s"},
		40:  {" 25% ", "settled  2,500 of 10,000"},
	} {
		t.Run(strconv.Itoa(int(columns)), func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, columns)
			p := newProgress(s.tty)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var g errgroup.Group
			g.Go(func() error {
				p.follow(ctx, func() view { return view{verb: "settled", done: 2500, total: 10_000, fraction: 0.25} })
				return nil
			})
			testredis.Eventually(t, 10*time.Second, func() bool {
				for _, text := range wanted {
					if !strings.Contains(s.String(), text) {
						return false
					}
				}
				return true
			}, "not all of %q on the screen", wanted)

			p.notef("something happened")
			testredis.Eventually(t, 10*time.Second, func() bool {
				return strings.Contains(s.String(), "\x1b[2K\rloadtest: something happened")
			}, "the note does not stand on a line of its own: %q", s)
			stop()
			_ = g.Wait() // never fails
			testredis.Eventually(t, 10*time.Second, func() bool { return strings.HasSuffix(s.String(), "\x1b[2K\r") },
				"the bar is not wiped at the end: %q", s)

			for _, line := range strings.FieldsFunc(s.String(), func(r rune) bool { return r == '\r' || r == '\n' }) {
				if !strings.Contains(line, "%") || columns < 60 {
					continue
				}
				line, _, _ = strings.Cut(line, "\b")
				line, _, _ = strings.Cut(line, "\x1b")
				if len(line) > int(columns) {
					t.Errorf("a line of %d on a screen of %d: %q", len(line), columns, line)
				}
			}
		})
	}
}
