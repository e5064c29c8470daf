package redrive

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// line is one line of an export: a record, or the last line, which says how many there are.
type line struct {
	Record *string `json:"record,omitempty"` // where it is UTF-8
	Base64 string  `json:"base64,omitempty"` // where it is not
	Count  *int64  `json:"count,omitempty"`
}

// Export writes the dead letters that match as JSON lines, oldest first, and a last line that tells their number, so that
// a file that was cut off is noticed. It removes nothing. It returns how many records it wrote.
func (d *DeadLetters) Export(ctx context.Context, f Filter, w io.Writer) (int64, error) {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	count := int64(0)
	var failure error
	err := d.List(ctx, f, func(l Letter) bool {
		one := line{Record: &l.Raw}
		if !utf8.ValidString(l.Raw) {
			one = line{Base64: base64.StdEncoding.EncodeToString([]byte(l.Raw))}
		}
		if failure = e.Encode(one); failure == nil {
			count++
		}
		return failure == nil
	})
	if err = errors.Join(err, failure); err != nil {
		return count, err
	}
	return count, errors.Join(e.Encode(line{Count: &count}), out.Flush())
}

// mostLine is the longest line of an export: twice the largest value Redis stores.
const mostLine = 1 << 30

// Import adds the records of an export to the dead letters, byte for byte. It returns how many it added; after an error
// those are there, and a second import would add them again, so skip them by their number.
func (d *DeadLetters) Import(ctx context.Context, r io.Reader, skip int64) (added int64, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostLine)
	var batch []string
	seen := int64(0)
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := d.list.Add(ctx, batch); err != nil {
			return err
		}
		added += int64(len(batch))
		batch = batch[:0]
		return nil
	}
	for lines.Scan() {
		var one line
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return added, errors.Join(flush(), fmt.Errorf("%w: line %d: %w", ErrFile, seen+1, err))
		}
		if one.Count != nil {
			err := flush()
			if err == nil && *one.Count != seen {
				err = fmt.Errorf("%w: it says %d records and has %d", ErrFile, *one.Count, seen)
			}
			return added, err
		}
		record := one.Record
		if record == nil {
			raw, err := base64.StdEncoding.DecodeString(one.Base64)
			if err != nil {
				return added, errors.Join(flush(), fmt.Errorf("%w: line %d: %w", ErrFile, seen+1, err))
			}
			text := string(raw)
			record = &text
		}
		if seen++; seen <= skip {
			continue
		}
		if batch = append(batch, *record); len(batch) == window {
			if err := flush(); err != nil {
				return added, err
			}
		}
	}
	return added, errors.Join(flush(), lines.Err(), fmt.Errorf("%w: the last line, with the number of records, is missing", ErrFile))
}
