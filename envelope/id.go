package envelope

import (
	"crypto/rand"
	"sync"

	"github.com/google/uuid"
)

// randomness is a supply of random bytes. Asking the operating system for sixteen at a time costs more than
// the rest of an id.
type randomness struct {
	bytes [1024]byte
	used  int
}

var supplies = sync.Pool{New: func() any { return &randomness{used: len(randomness{}.bytes)} }}

// newID makes a random UUID, version 4 (E2).
func newID() string {
	s := supplies.Get().(*randomness)
	if s.used == len(s.bytes) {
		_, _ = rand.Read(s.bytes[:]) // never fails (crypto/rand)
		s.used = 0
	}
	var id uuid.UUID
	s.used += copy(id[:], s.bytes[s.used:])
	supplies.Put(s)
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return id.String()
}
