package lua

import (
	"errors"
	"fmt"
	"strings"

	"github.com/babelpool/babelpool/internal/flow"
)

var (
	// ErrQueueName is returned when a queue's name is empty or ends like one of a queue's own keys (R4).
	ErrQueueName = errors.New("lua: queue name refused")

	// ErrKeyPrefix is returned when a key prefix holds a whole hash tag, which would put every queue in one
	// slot (R3).
	ErrKeyPrefix = errors.New("lua: key prefix refused")

	// ErrDeadLetterKey is returned when a queue's dead letter key is another key of a queue (D1).
	ErrDeadLetterKey = errors.New("lua: dead letter key refused")

	// ErrCrossSlot is returned when the keys of a queue fall in different slots of a cluster (R3).
	ErrCrossSlot = errors.New("lua: keys of a queue in different cluster slots")
)

// refusedSuffixes end the keys that hang on a ready list; a queue of such a name would read them as messages.
var refusedSuffixes = []string{
	":processing", ":processing:deadlines", ":delayed", ":reserved", ":notify", ":paused", ":recoveries", movingSuffix,
}

// movingSuffix ends the key of what is on its way to a queue in another slot of a cluster.
const movingSuffix = ":moving"

// CheckName applies R4 to a queue name. Names read from messages pass the same check.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: it is empty (R4)", ErrQueueName)
	}
	for _, suffix := range refusedSuffixes {
		if strings.HasSuffix(name, suffix) {
			return fmt.Errorf("%w: %q ends in %q, which names a key of another queue (R4)", ErrQueueName, name, suffix)
		}
	}
	return nil
}

// Keys are the physical keys of one queue. Those the layout does not have are empty.
type Keys struct {
	Ready            string
	Processing       string // legacy
	Deadlines        string // legacy
	Delayed          string // zset
	Reserved         string // zset
	Notify           string // zset
	Paused           string
	Recoveries       string // counts of lost workers (R6, B21)
	DeadLetters      string
	DeadLetterNotify string // zset; empty when the dead letter key was set by the user, who gets no token
}

// Leases is the key of the leases: deadlines, or reserved.
func (k *Keys) Leases() string {
	if k.Reserved != "" {
		return k.Reserved
	}
	return k.Deadlines
}

// NewKeys derives the keys of a queue (L, Z, R5). deadLetterKey, when not empty, is taken as it is (D1).
func NewKeys(layout flow.Layout, prefix, name, deadLetterKey string) (Keys, error) {
	if err := CheckName(name); err != nil {
		return Keys{}, err
	}
	if tag, ok := hashTag(prefix); ok {
		return Keys{}, fmt.Errorf("%w: %q holds the whole hash tag %q; put the tag in the queue's name (R3)",
			ErrKeyPrefix, prefix, "{"+tag+"}")
	}
	var k Keys
	if layout == flow.Zset {
		k.Ready = prefix + "queues:" + name
		k.Delayed, k.Reserved, k.Notify = k.Ready+":delayed", k.Ready+":reserved", k.Ready+":notify"
		k.DeadLetters = k.Ready + ".dlq"
		k.DeadLetterNotify = k.DeadLetters + ":notify"
	} else {
		k.Ready = prefix + name
		k.Processing, k.Deadlines = k.Ready+":processing", k.Ready+":processing:deadlines"
		k.DeadLetters = k.Ready + ".dlq"
	}
	k.Paused, k.Recoveries = k.Ready+":paused", k.Ready+":recoveries"
	if deadLetterKey != "" {
		for _, own := range k.own() {
			if deadLetterKey == own {
				return Keys{}, fmt.Errorf("%w: %q is a key of queue %q itself (D1)", ErrDeadLetterKey, deadLetterKey, name)
			}
		}
		k.DeadLetters, k.DeadLetterNotify = deadLetterKey, ""
	}
	return k, nil
}

// own are the keys that belong to the queue alone: all but its dead letters.
func (k Keys) own() []string {
	var keys []string
	for _, key := range []string{
		k.Ready, k.Processing, k.Deadlines, k.Delayed, k.Reserved, k.Notify, k.Paused, k.Recoveries,
	} {
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// CheckApart reports a dead letter key that is a key another queue of the pool works on (D1). Several queues
// may share one dead letter key, and a queue may consume another's dead letters by their derived name.
func CheckApart(all []Keys, overridden []bool) error {
	for i, k := range all {
		if !overridden[i] {
			continue
		}
		for j, other := range all {
			if i == j {
				continue
			}
			// The tokens of its dead letters are its own as well; for a queue without any that is "".
			for _, own := range append(other.own(), other.DeadLetterNotify) {
				if k.DeadLetters == own {
					return fmt.Errorf("%w: %q is a key of another queue of the pool (D1)", ErrDeadLetterKey, own)
				}
			}
		}
	}
	return nil
}

// CheckSlot reports whether the keys share one cluster slot, as the scripts need (R3).
func (k Keys) CheckSlot(name string) error {
	for _, key := range append(k.own(), k.DeadLetters, k.DeadLetterNotify) {
		if key != "" && Slot(key) != Slot(k.Ready) {
			return fmt.Errorf("%w: %q and %q; on a cluster put a hash tag in the queue's name, for instance %q (R3)",
				ErrCrossSlot, k.Ready, key, "{"+strings.Trim(name, "{}")+"}")
		}
	}
	return nil
}

// hashTag is the part of a key between its first "{" and the next "}", when that is not empty.
func hashTag(key string) (string, bool) {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	tag, _, ok := strings.Cut(rest, "}")
	return tag, ok && tag != ""
}

// Slot is the cluster slot of a key: CRC16 (XMODEM) of its hash tag, or of all of it, modulo 16,384.
func Slot(key string) int {
	if tag, ok := hashTag(key); ok {
		key = tag
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ crcs[byte(crc>>8)^key[i]]
	}
	return int(crc % 16384)
}

// crcs holds, for each byte, what it adds to the CRC16 of Redis Cluster, whose polynomial is 0x1021.
var crcs = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()
