// Package testlog records what is logged, for tests. It belongs in no program.
package testlog

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Recorder is a slog handler that keeps each line as text, in order. Attributes of With are left out. The zero value
// is ready; it is safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	lines []string
}

// Enabled keeps every level.
func (r *Recorder) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs returns the same recorder.
func (r *Recorder) WithAttrs([]slog.Attr) slog.Handler { return r }

// WithGroup returns the same recorder.
func (r *Recorder) WithGroup(string) slog.Handler { return r }

// Handle keeps a line.
func (r *Recorder) Handle(ctx context.Context, record slog.Record) error {
	var text bytes.Buffer
	err := slog.NewTextHandler(&text, nil).Handle(ctx, record)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, text.String())
	return err
}

// Lines are the lines so far.
func (r *Recorder) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// With is the lines that contain all the words; nil when there are none.
func (r *Recorder) With(words ...string) []string {
	var found []string
	for _, line := range r.Lines() {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	return found
}

// Want checks that the lines so far contain these texts, one each, in order, and that there are no others.
func (r *Recorder) Want(t testing.TB, texts ...string) {
	t.Helper()
	lines := r.Lines()
	for i, line := range lines {
		if i >= len(texts) || !strings.Contains(line, texts[i]) {
			t.Errorf("line %d: %s", i, line)
		}
	}
	if len(lines) < len(texts) {
		t.Errorf("%d lines, want %d", len(lines), len(texts))
	}
}
