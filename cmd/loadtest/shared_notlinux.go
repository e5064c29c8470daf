//go:build unix && !linux

package main

import (
	"errors"
	"os"
)

// namelessFile is a temporary file whose name is gone already, so that nothing is left whatever ends the run.
func namelessFile() (*os.File, error) {
	f, err := os.CreateTemp("", "loadtest-books-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
