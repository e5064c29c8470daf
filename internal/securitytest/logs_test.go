package securitytest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// logBook writes every record, debug included, with both of slog's handlers, and keeps the messages beside.
type logBook struct {
	mu         sync.Mutex
	text, json bytes.Buffer
	messages   map[string]int
	handlers   []slog.Handler
}

func newLogBook() *logBook {
	b := &logBook{messages: map[string]int{}}
	all := &slog.HandlerOptions{Level: slog.LevelDebug}
	b.handlers = []slog.Handler{slog.NewTextHandler(&b.text, all), slog.NewJSONHandler(&b.json, all)}
	return b
}

func (b *logBook) logger() *slog.Logger { return slog.New(logHandler{b, b.handlers}) }

// logHandler adds the attributes of With to both handlers.
type logHandler struct {
	book     *logBook
	handlers []slog.Handler
}

func (h logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	h.book.mu.Lock()
	defer h.book.mu.Unlock()
	h.book.messages[r.Message]++
	for _, handler := range h.handlers {
		if err := handler.Handle(ctx, r.Clone()); err != nil {
			return err
		}
	}
	return nil
}

func (h logHandler) with(f func(slog.Handler) slog.Handler) slog.Handler {
	handlers := make([]slog.Handler, len(h.handlers))
	for i := range handlers {
		handlers[i] = f(h.handlers[i])
	}
	return logHandler{h.book, handlers}
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(handler slog.Handler) slog.Handler { return handler.WithAttrs(attrs) })
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return h.with(func(handler slog.Handler) slog.Handler { return handler.WithGroup(name) })
}

// count is how often this message was logged so far.
func (b *logBook) count(message string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages[message]
}

// lines is how many records there are.
func (b *logBook) lines() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, count := range b.messages {
		n += count
	}
	return n
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String() + b.json.String()
}

// check holds what is true of every log: a record is one line, without control characters; messages are constants; no
// secret is in it.
func (b *logBook) check(t *testing.T) {
	t.Helper()
	all, records := b.String(), b.lines()
	if records == 0 {
		t.Error("nothing is logged")
	}
	if found := secretsIn(all); found != nil {
		t.Errorf("logged: %q", found)
	}
	if n := strings.Count(all, "\n"); n != 2*records {
		t.Errorf("%d lines of %d records in two forms", n, records)
	}
	for line := range strings.Lines(all) {
		raw := strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(raw, "{") {
			raw = strings.ReplaceAll(raw, "\x7f", "") // JSON strings may hold it, and slog leaves it so
		}
		if i := strings.IndexFunc(raw, unicode.IsControl); i >= 0 {
			t.Errorf("a control character at %d of %q", i, line)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for message := range b.messages {
		if strings.ContainsFunc(message, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.Contains(message, forged) {
			t.Errorf("a message that is no constant: %q", message)
		}
	}
	if len(b.messages) > 40 {
		t.Errorf("%d different messages", len(b.messages))
	}
}

// errorBook keeps the texts of errors.
type errorBook struct {
	mu    sync.Mutex
	texts []string
}

func (b *errorBook) add(err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.texts = append(b.texts, err.Error())
}

// check holds what is true of every error that this module makes: no secret, and nothing that moves a terminal's cursor
// or forges a line. Joined errors have lines, but their texts begin none.
func (b *errorBook) check(t *testing.T, least int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.texts) < least {
		t.Errorf("only %d errors, want %d at least: %q", len(b.texts), least, b.texts)
	}
	for _, text := range b.texts {
		if found := secretsIn(text); found != nil {
			t.Errorf("%q is told by %q", found, text)
		}
		if strings.ContainsAny(text, "\x1b\r\x00\x7f") || strings.Contains(text, "\n"+forged) || len(text) > 5000 {
			t.Errorf("an error as it came, of %d bytes: %.400q", len(text), text)
		}
	}
}
