package redisproc

import "errors"

var (
	// ErrNotInstalled is returned when no redis-server is on PATH.
	ErrNotInstalled = errors.New("redisproc: no redis-server on PATH")

	// ErrStopped is returned when a server is to be used again after Stop.
	ErrStopped = errors.New("redisproc: server was stopped")

	// ErrNotRunning is returned when an operation needs a live process and there is none, because
	// it was killed or ended by itself.
	ErrNotRunning = errors.New("redisproc: server is not running")

	// ErrExternal is returned when a server that was only attached to is to be killed, restarted
	// or frozen.
	ErrExternal = errors.New("redisproc: server is not ours to control")

	// ErrUnsupported is returned when the operating system has no such signal.
	ErrUnsupported = errors.New("redisproc: not supported on this operating system")
)

// errPortTaken is returned when the server ended because another process holds its port.
var errPortTaken = errors.New("redisproc: port is taken")
