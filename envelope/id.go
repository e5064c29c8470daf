package envelope

import (
	crypto "crypto/rand"
	"math/rand/v2"
	"sync"
)

const (
	uuidBytes  = 16
	uuidLength = 36 // as text
)

// randomness is a supply of random bytes. Asking the operating system for sixteen at a time costs more than
// the rest of an id, and so do all the bytes together; so it gives the seeds, and each makes some ids only: two
// copies of a machine that was frozen and started twice must not give the same ids for longer than that.
type randomness struct {
	bytes [64 * uuidBytes]byte
	left  int // bytes not used yet, at the end
	next  *rand.ChaCha8
}

var supplies = sync.Pool{New: func() any { return new(randomness) }}

// newID makes a random UUID, version 4 (E2).
func newID() string {
	s := supplies.Get().(*randomness)
	var text [uuidLength]byte
	id := string(s.appendUUID(text[:0]))
	supplies.Put(s)
	return id
}

// appendUUID appends a new UUID in its usual spelling.
func (s *randomness) appendUUID(dst []byte) []byte {
	if s.left == 0 {
		s.fill()
	}
	id := (*[uuidBytes]byte)(s.bytes[len(s.bytes)-s.left:])
	s.left -= uuidBytes
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562

	n := len(dst)
	dst = append(dst, "00000000-0000-0000-0000-000000000000"...)
	text := (*[uuidLength]byte)(dst[n:])
	for i, at := range uuidPlaces {
		b := id[i]
		text[at], text[at+1] = hexDigits[b>>4], hexDigits[b&0xf]
	}
	return dst
}

// uuidPlaces is where the digits of each byte stand.
var uuidPlaces = [uuidBytes]uint8{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

func (s *randomness) fill() {
	var seed [32]byte
	_, _ = crypto.Read(seed[:]) // never fails (crypto/rand)
	if s.next == nil {
		s.next = rand.NewChaCha8(seed)
	} else {
		s.next.Seed(seed)
	}
	_, _ = s.next.Read(s.bytes[:])
	s.left = len(s.bytes)
}
