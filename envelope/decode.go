package envelope

import (
	"strconv"
	"strings"
)

// Decode reads a body as a consumer must (E3) and returns its envelope. A body
// that is not acceptable is poison: the envelope is then zero and the error a
// *PoisonError, which matches ErrPoison. A framed body is not acceptable
// either: Unframe first.
//
// Accepted is one JSON object, nothing but white space around it, in which
//
//   - job is a non-blank string; or it is missing or blank and the alias urn is one;
//   - trace_id is a non-blank string;
//   - data is an object;
//   - meta is an object with a schema_version that reads 1 (not 1.0, not "1");
//   - attempts is missing, or a plain integer from 0 to the largest int64.
//
// Blank means nothing but Unicode white space. Names are case-sensitive and may
// be spelt with escapes; of equal keys the last counts, at the top and inside
// meta. The whole body is checked: its grammar, its UTF-8, and its depth (at
// most 10,000, the limit of encoding/json), so Bind fails later only for what
// the target type cannot hold.
//
// The body is read in one pass by a scanner of this package's own, which checks
// values without decoding them. Two other ways were tried: encoding/json and
// goccy/go-json into a struct of raw messages. Both lose on time and on
// allocations, since they need the body as bytes and copy every part they keep
// (see BenchmarkDecode; the scanner allocates nothing for a canonical body).
// And neither keeps the rules without a second look at the body: they match
// names in any case, let invalid UTF-8 pass, and say nothing of unknown keys.
func Decode(body string) (Envelope, error) {
	var d decoder
	if reason := d.decode(body); reason != "" {
		return Envelope{}, &PoisonError{Reason: reason}
	}
	return d.e, nil
}

// decoder collects the raw values of the known keys while the cursor passes.
// They are judged at the end only, since a later equal key may replace them.
// An absent key is "", which no valid raw value is.
type decoder struct {
	c cursor
	e Envelope

	job, urn, trace, attempts string
	hasMeta                   bool // the last meta is an object
	version                   string
	id, queue, lang, created  string
	forbidden                 uint8 // bits of forbiddenPointers
}

// forbiddenPointers names the keys that must not be emitted (E5), as decoder's
// bits count them.
var forbiddenPointers = [...]string{"/timestamp", "/meta/max_retries", "/meta/attempts", "/meta/source", "/meta/ts"}

const (
	forbidTimestamp uint8 = 1 << iota
	forbidMaxRetries
	forbidAttempts
	forbidSource
	forbidTS
)

// forbiddenInMeta returns the bit of a meta key that must not be emitted, 0
// for every other key.
func forbiddenInMeta(name string) uint8 {
	switch name {
	case "max_retries":
		return forbidMaxRetries
	case "attempts":
		return forbidAttempts
	case "source":
		return forbidSource
	case "ts":
		return forbidTS
	}
	return 0
}

// decode fills d.e and returns what makes the body poison, "" for nothing.
func (d *decoder) decode(body string) (reason string) {
	c := &d.c
	c.text = body
	c.enter()
	for c.key() {
		switch name := c.name(); name {
		case "job":
			d.job = c.value()
		case "trace_id":
			d.trace = c.value()
		case "data":
			d.e.Data = c.value()
		case "meta":
			d.decodeMeta()
		case "attempts":
			d.attempts = c.value()
		case "urn":
			d.urn = c.value()
		case "dead_letter":
			d.e.DeadLetter = c.value()
		case "timestamp":
			d.forbidden |= forbidTimestamp
			c.value()
		default:
			d.e.Extra = append(d.e.Extra, Member{Name: name, Value: c.value()})
		}
	}
	if !c.end() {
		return c.reason()
	}
	return d.judge()
}

// decodeMeta reads the value of a meta key. It replaces all that an earlier
// meta said, forbidden keys included: that meta is not part of the message.
func (d *decoder) decodeMeta() {
	c := &d.c
	d.e.Meta = Meta{}
	d.version, d.id, d.queue, d.lang, d.created = "", "", "", "", ""
	d.forbidden &= forbidTimestamp
	if d.hasMeta = c.at('{'); !d.hasMeta {
		c.value()
		return
	}
	c.enter()
	for c.key() {
		name := c.name()
		switch name {
		case "id":
			d.id = c.value()
		case "queue":
			d.queue = c.value()
		case "lang":
			d.lang = c.value()
		case "schema_version":
			d.version = c.value()
		case "created_at":
			d.created = c.value()
		default:
			raw := c.value()
			if bit := forbiddenInMeta(name); bit != 0 {
				d.forbidden |= bit
				continue
			}
			d.e.Meta.Extra = append(d.e.Meta.Extra, Member{Name: name, Value: raw})
		}
	}
}

// judge applies E3 to what was collected.
func (d *decoder) judge() (reason string) {
	if reason = d.judgeURN(); reason != "" {
		return reason
	}
	var ok bool
	if d.e.TraceID, ok = stringValue(d.trace); !ok || strings.TrimSpace(d.e.TraceID) == "" {
		return "trace_id is not a non-blank string"
	}
	if d.e.Data == "" || d.e.Data[0] != '{' {
		return "data is not an object"
	}
	if !d.hasMeta {
		return "meta is not an object"
	}
	if d.version != "1" {
		return "meta.schema_version is not the integer 1"
	}
	if d.attempts != "" {
		if d.e.Attempts, ok = counter(d.attempts); !ok {
			return "attempts is not a non-negative integer"
		}
	}
	d.fillMeta()
	if d.forbidden != 0 {
		for i, pointer := range forbiddenPointers {
			if d.forbidden&(1<<i) != 0 {
				d.e.ForbiddenKeys = append(d.e.ForbiddenKeys, pointer)
			}
		}
	}
	return ""
}

// judgeURN takes the URN from job or from its alias.
func (d *decoder) judgeURN() (reason string) {
	if d.job != "" {
		job, ok := stringValue(d.job)
		if !ok {
			return "job is not a string"
		}
		d.e.URN = strings.TrimSpace(job)
	}
	if d.e.URN != "" {
		if d.urn != "" {
			d.e.Extra = append(d.e.Extra, Member{Name: "urn", Value: d.urn})
		}
		return ""
	}
	urn, ok := stringValue(d.urn)
	if d.e.URN = strings.TrimSpace(urn); !ok || d.e.URN == "" {
		return "neither job nor urn is a non-blank string"
	}
	return ""
}

// fillMeta sets the fields of meta that are of the expected type and moves the
// others to Extra.
func (d *decoder) fillMeta() {
	m := &d.e.Meta
	m.ID = d.metaString("id", d.id)
	m.Queue = d.metaString("queue", d.queue)
	m.Lang = d.metaString("lang", d.lang)
	if d.created == "" {
		return
	}
	var ok bool
	if m.CreatedAt, ok = counter(d.created); !ok {
		m.Extra = append(m.Extra, Member{Name: "created_at", Value: d.created})
	}
}

func (d *decoder) metaString(name, raw string) string {
	text, ok := stringValue(raw)
	if !ok && raw != "" {
		d.e.Meta.Extra = append(d.e.Meta.Extra, Member{Name: name, Value: raw})
	}
	return text
}

// counter reads a raw value that is a plain integer, digits and nothing else,
// that fits an int64.
func counter(raw string) (n int64, ok bool) {
	if raw == "" || digits(raw, 0) != len(raw) {
		return 0, false
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil { // out of range: n is then the largest int64
		return 0, false
	}
	return n, true
}
