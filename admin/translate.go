package admin

import "github.com/babelpool/babelpool/envelope"

// translate is the text of a message in the target's layout, or why it stays. The envelope is the same in both; attempts count
// the deliveries so far in both, while a message is ready (A1). Legacy has frames around it that carry headers (F1).
func (m *mover) translate(raw string) (text, stays string) {
	if m.from.Layout == m.to.Layout {
		return raw, ""
	}
	text = raw
	if frame, framed := envelope.Unframe(raw); framed && m.from.Layout == Legacy {
		if len(frame.Headers) > 0 && !m.o.DropHeaders {
			return "", StayedHeaders
		}
		text = frame.Body
	}
	if _, err := envelope.Decode(text); err != nil {
		return "", StayedForeign
	}
	return text, ""
}
