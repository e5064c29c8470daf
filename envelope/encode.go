package envelope

import "strconv"

// Encode returns the wire text of e: compact, keys in the order of the
// contract, no HTML escaping, no newline at the end (E1). It is AppendTo into a
// new string.
func (e Envelope) Encode() string {
	return string(e.AppendTo(make([]byte, 0, e.sizeHint())))
}

// AppendTo appends the wire text of e to dst and returns the longer slice.
//
// The order is job, trace_id, data, meta, attempts, dead_letter when there is
// one, then Extra; in meta id, queue, lang, schema_version, created_at, then
// Meta.Extra (E1, E4). Data, DeadLetter and the values of extra members are
// written as they stand, so they must be valid JSON; what New and Decode put
// there is. White space inside them stays (a decoded body may have been
// indented).
//
// Left out are members of Extra and Meta.Extra that name a forbidden key (E5)
// or repeat a field, and members without a value. The one exception is a field
// of meta that is zero and has a member of its name in Meta.Extra: then the
// member is written, which is how a value of an unexpected type survives.
//
// Strings that are not valid UTF-8 get U+FFFD for each wrong byte.
func (e Envelope) AppendTo(dst []byte) []byte {
	dst = append(dst, `{"job":`...)
	dst = appendQuoted(dst, e.URN)
	dst = append(dst, `,"trace_id":`...)
	dst = appendQuoted(dst, e.TraceID)
	dst = append(dst, `,"data":`...)
	if e.Data == "" {
		dst = append(dst, `{}`...)
	} else {
		dst = append(dst, e.Data...)
	}
	dst = append(dst, `,"meta":`...)
	dst = e.Meta.appendTo(dst)
	dst = append(dst, `,"attempts":`...)
	dst = strconv.AppendInt(dst, e.Attempts, 10)
	if e.DeadLetter != "" {
		dst = append(dst, `,"dead_letter":`...)
		dst = append(dst, e.DeadLetter...)
	}
	for _, m := range e.Extra {
		switch m.Name {
		case "job", "trace_id", "data", "meta", "attempts", "dead_letter", "timestamp":
			continue
		}
		dst = m.appendTo(dst)
	}
	return append(dst, '}')
}

// appendTo writes the object of meta. Every member is written with a comma
// before it; the first comma is then turned into the brace, so that it does not
// matter which members are left out.
func (m *Meta) appendTo(dst []byte) []byte {
	start := len(dst)
	dst = m.appendField(dst, "id", m.ID)
	dst = m.appendField(dst, "queue", m.Queue)
	dst = m.appendField(dst, "lang", m.Lang)
	dst = append(dst, `,"schema_version":`...)
	dst = strconv.AppendInt(dst, SchemaVersion, 10)
	if m.CreatedAt != 0 || !m.carries("created_at") {
		dst = append(dst, `,"created_at":`...)
		dst = strconv.AppendInt(dst, m.CreatedAt, 10)
	}
	dst[start] = '{'
	for _, extra := range m.Extra {
		if !m.hides(extra.Name) {
			dst = extra.appendTo(dst)
		}
	}
	return append(dst, '}')
}

func (m *Meta) appendField(dst []byte, name, value string) []byte {
	if value == "" && m.carries(name) {
		return dst
	}
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return appendQuoted(dst, value)
}

// carries reports whether Extra holds a member of that name with a value.
func (m *Meta) carries(name string) bool {
	for _, extra := range m.Extra {
		if extra.Name == name && extra.Value != "" {
			return true
		}
	}
	return false
}

// hides reports whether a member of that name in Extra must not be written:
// it is forbidden, or a field says it already.
func (m *Meta) hides(name string) bool {
	switch name {
	case "id":
		return m.ID != ""
	case "queue":
		return m.Queue != ""
	case "lang":
		return m.Lang != ""
	case "created_at":
		return m.CreatedAt != 0
	case "schema_version":
		return true
	}
	return forbiddenInMeta(name) != 0
}

func (m Member) appendTo(dst []byte) []byte {
	if m.Value == "" {
		return dst
	}
	dst = append(dst, ',')
	dst = appendQuoted(dst, m.Name)
	dst = append(dst, ':')
	return append(dst, m.Value...)
}

// sizeHint estimates the encoded length, exactly or a little above when no
// string needs escapes.
func (e *Envelope) sizeHint() int {
	const fixed = 200 // the known keys, braces and both numbers
	n := fixed + len(e.URN) + len(e.TraceID) + len(e.Data) + len(e.DeadLetter) +
		len(e.Meta.ID) + len(e.Meta.Queue) + len(e.Meta.Lang)
	for _, members := range [...][]Member{e.Extra, e.Meta.Extra} {
		for _, m := range members {
			n += len(m.Name) + len(m.Value) + len(`,"":`)
		}
	}
	return n
}
