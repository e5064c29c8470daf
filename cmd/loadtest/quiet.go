package main

import (
	"context"
	"errors"
	"log/slog"
)

// quiet drops the pool's reports of failures that were asked for.
type quiet struct{ slog.Handler }

// Handle passes on what is no failure on purpose.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	injected := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		injected = injected || ok && errors.Is(err, errInjected)
		return !injected
	})
	if injected {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs keeps the filter.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup keeps the filter.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
