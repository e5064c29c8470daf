// Package admin does what operators do to whole queues, from a program: cmd/babelpool does the same from a shell.
package admin
