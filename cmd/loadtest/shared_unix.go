//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

const canShareMemory = true

const (
	sharedHead = 1 << 16 // bytes before the first leaf: a multiple of every system's memory page
	leafBytes  = int(unsafe.Sizeof(leaf{}))
)

// sharedMemory is a file without a name that several processes have in their memory. It holds the head
// and the leaves of the books.
type sharedMemory struct {
	file *os.File
	maps [][]byte
}

// newSharedMemory makes the file.
func newSharedMemory() (*sharedMemory, error) {
	file, err := namelessFile()
	if err != nil {
		return nil, fmt.Errorf("memory for several processes: %w", err)
	}
	m := &sharedMemory{file: file}
	if err := m.extend(0, sharedHead); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// head is what stands before the leaves.
func (m *sharedMemory) head() (*bookHead, error) {
	b, err := m.bytes(0, sharedHead)
	if err != nil {
		return nil, err
	}
	return (*bookHead)(unsafe.Pointer(&b[0])), nil //nolint:gosec // G103: shorter, aligned, and never moved
}

// newLeaf adds leaf i to the file and returns it.
func (m *sharedMemory) newLeaf(i int) (*leaf, error) {
	if err := m.extend(sharedHead+i*leafBytes, leafBytes); err != nil {
		return nil, err
	}
	return m.leaf(i)
}

// leaf is leaf i, which must be in the file.
func (m *sharedMemory) leaf(i int) (*leaf, error) {
	b, err := m.bytes(sharedHead+i*leafBytes, leafBytes)
	if err != nil {
		return nil, err
	}
	return (*leaf)(unsafe.Pointer(&b[0])), nil //nolint:gosec // G103: as long as a leaf, aligned, and never moved
}

// extend writes zeros. A file that is only declared longer would kill the process at the first touch of what
// there is no memory for.
func (m *sharedMemory) extend(from, length int) error {
	if _, err := m.file.WriteAt(make([]byte, length), int64(from)); err != nil {
		return fmt.Errorf("the books cannot grow: %w", err)
	}
	return nil
}

func (m *sharedMemory) bytes(from, length int) ([]byte, error) {
	b, err := syscall.Mmap(int(m.file.Fd()), int64(from), length, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("the books cannot be shared: %w", err)
	}
	m.maps = append(m.maps, b)
	return b, nil
}

// close takes the memory away: no entry may be touched any more.
func (m *sharedMemory) close() error {
	var problems []error
	for _, b := range m.maps {
		problems = append(problems, syscall.Munmap(b))
	}
	m.maps = nil
	return errors.Join(append(problems, m.file.Close())...)
}
