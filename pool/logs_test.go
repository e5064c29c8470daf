package pool_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// recorder keeps what a pool logs.
type recorder struct {
	mu    sync.Mutex
	lines []string // "LEVEL message key=value …"
}

func (r *recorder) logger() *slog.Logger { return slog.New(recording{recorder: r}) }

// matching returns the lines that contain every one of the words.
func (r *recorder) matching(words ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, line := range r.lines {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}

// recording is a slog.Handler; groups are not used by the pool.
type recording struct {
	*recorder
	attrs string
}

func (h recording) Enabled(context.Context, slog.Level) bool { return true }

func (h recording) Handle(_ context.Context, record slog.Record) error {
	var b strings.Builder
	b.WriteString(record.Level.String() + " " + record.Message + h.attrs)
	record.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, b.String())
	return nil
}

func (h recording) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.attrs += fmt.Sprintf(" %s=%v", a.Key, a.Value)
	}
	return h
}

func (h recording) WithGroup(string) slog.Handler { return h }
