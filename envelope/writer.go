package envelope

import (
	"strconv"
	"strings"
)

// Writer makes the texts of new messages of one queue (E1, E2): the very bytes
// that New and Encode make, without an Envelope and its strings in between. It
// uses its buffers again for each message, which is several times as fast, and
// is not safe for concurrent use.
type Writer struct {
	encoder
	queue string

	ids  randomness
	made string // ids not used yet

	end   []byte // of a text, from behind meta.id on
	endOf int64  // the created_at in end
}

// NewWriter makes a Writer for a queue's logical name.
func NewWriter(queue string) *Writer {
	w := &Writer{queue: queue}
	w.encoder.reset()
	w.setEnd(0)
	return w
}

// Fresh is what the text of a new message is made of.
type Fresh struct {
	URN     string // as New takes it
	Data    any    // as New takes it
	ID      string // meta.id, as it stands; NewID makes one
	TraceID string // a blank one becomes a new UUIDv4

	CreatedAt int64 // Unix milliseconds
}

// Text returns the text of a message. It is valid until the next call. The
// errors are those of New.
func (w *Writer) Text(m *Fresh) ([]byte, error) {
	urn := strings.TrimSpace(m.URN)
	if urn == "" {
		return nil, ErrEmptyURN
	}
	if cap(w.text) > keptBuffer {
		w.text = nil // of one huge message, long used
	}
	text := w.text[:0]
	text = append(text, `{"job":`...)
	text = appendQuoted(text, urn)
	text = append(text, `,"trace_id":`...)
	if strings.TrimSpace(m.TraceID) == "" {
		text = append(text, '"')
		text = w.ids.appendUUID(text)
		text = append(text, '"')
	} else {
		text = appendQuoted(text, m.TraceID)
	}
	text = append(text, `,"data":`...)
	w.text = text
	if err := w.appendData(m.Data); err != nil {
		return nil, err
	}
	text = w.text
	text = append(text, `,"meta":{"id":`...)
	text = appendQuoted(text, m.ID)
	if m.CreatedAt != w.endOf {
		w.setEnd(m.CreatedAt)
	}
	text = append(text, w.end...)
	w.text = text
	return text, nil
}

// setEnd makes the end of the texts with this created_at. A producer in a hurry
// makes many messages in a millisecond, and one end serves them all.
func (w *Writer) setEnd(createdAt int64) {
	end := w.end[:0]
	end = append(end, `,"queue":`...)
	end = appendQuoted(end, w.queue)
	end = append(end, `,"lang":"`+Lang+`","schema_version":`...)
	end = strconv.AppendInt(end, SchemaVersion, 10)
	end = append(end, `,"created_at":`...)
	end = strconv.AppendInt(end, createdAt, 10)
	end = append(end, `},"attempts":0}`...)
	w.end, w.endOf = end, createdAt
}

// idsAtOnce is how many ids share an allocation: a caller that keeps one keeps
// them all, half a kilobyte.
const idsAtOnce = 16

// NewID returns a new UUID, version 4, for a meta.id.
func (w *Writer) NewID() string {
	if w.made == "" {
		var text [idsAtOnce * uuidLength]byte
		next := text[:0]
		for range idsAtOnce {
			next = w.ids.appendUUID(next)
		}
		w.made = string(next)
	}
	id := w.made[:uuidLength]
	w.made = w.made[uuidLength:]
	return id
}
