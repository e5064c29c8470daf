//go:build !unix

package main

import (
	"errors"
	"os"
)

const canShareMemory = false // so the flags ask for one process

var errNoSharedMemory = errors.New("several processes cannot share memory here")

// sharedMemory does not exist here.
type sharedMemory struct{ file *os.File }

func newSharedMemory() (*sharedMemory, error)    { return nil, errNoSharedMemory }
func (*sharedMemory) head() (*bookHead, error)   { return nil, errNoSharedMemory }
func (*sharedMemory) newLeaf(int) (*leaf, error) { return nil, errNoSharedMemory }
func (*sharedMemory) leaf(int) (*leaf, error)    { return nil, errNoSharedMemory }
func (*sharedMemory) close() error               { return nil }
