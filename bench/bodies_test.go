package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/babelpool/babelpool/envelope"
)

// bodies makes distinct envelopes fast: one text, with the digits of meta.id and of the order's number written
// anew in each copy. A million of them take less time than Redis needs to store them.
type bodies struct {
	text      string
	id, order int // where the digits stand
}

const (
	idDigits    = "100000000000" // the last group of meta.id, as a number in decimal digits
	orderDigits = "200000000"
)

// newBodies makes bodies of about size bytes.
func newBodies(tb testing.TB, size int) bodies {
	tb.Helper()
	text := encode(tb, "")
	text = encode(tb, strings.Repeat("x", max(0, size-len(text))))
	return bodies{text, strings.Index(text, idDigits), strings.Index(text, orderDigits)}
}

func encode(tb testing.TB, note string) string {
	tb.Helper()
	data := json.RawMessage(`{"order_id":` + orderDigits + `,"note":"` + note + `"}`)
	e, err := envelope.New(urn, queue, data, envelope.WithID("9b2f6c1e-5d47-4a03-8e61-"+idDigits),
		envelope.WithTraceID("3c9d1f0a-77be-4f52-a1d8-6e04b7c25f93"))
	must(tb, err)
	return e.Encode()
}

// at is body number i, below 100 million.
func (t bodies) at(i int) string {
	text := []byte(t.text)
	digits := fmt.Appendf(make([]byte, 0, 16), "%08d", i)
	copy(text[t.id+len(idDigits)-len(digits):], digits)
	copy(text[t.order+len(orderDigits)-len(digits):], digits)
	return string(text)
}

// push appends bodies 0 to n-1 to a list.
func (r *rig) push(tb testing.TB, key string, texts bodies, n int) {
	tb.Helper()
	r.inPipelines(tb, texts, n, func(values []any) []any { return append([]any{"rpush", key}, values...) })
}

// inPipelines sends bodies 0 to n-1 in commands of up to 1,000, a few of them at a time.
func (r *rig) inPipelines(tb testing.TB, texts bodies, n int, command func(values []any) []any) {
	tb.Helper()
	const most, bytesPerCommand, perPipeline = 1000, 1 << 20, 8
	chunk := max(1, min(most, bytesPerCommand/len(texts.text)))
	pipe := r.client.Pipeline()
	for from := 0; from < n; from += chunk {
		values := make([]any, 0, chunk)
		for i := from; i < min(from+chunk, n); i++ {
			values = append(values, texts.at(i))
		}
		pipe.Do(context.Background(), command(values)...)
		if pipe.Len() == perPipeline || from+chunk >= n {
			_, err := pipe.Exec(context.Background())
			must(tb, err)
		}
	}
}

func TestBodiesAreDistinctEnvelopes(t *testing.T) {
	t.Parallel()
	texts := newBodies(t, bodyBytes)
	seen := map[string]bool{}
	for _, i := range []int{0, 1, 12345678, 99999999} {
		e, err := envelope.Decode(texts.at(i))
		if err != nil {
			t.Fatal(err)
		}
		var data order
		if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
			t.Fatal(err)
		}
		if data.OrderID != int64(200000000+i) || len(texts.at(i)) != bodyBytes || seen[e.Meta.ID] {
			t.Errorf("body %d: order %d, %d bytes, id %s", i, data.OrderID, len(texts.at(i)), e.Meta.ID)
		}
		seen[e.Meta.ID] = true
	}
}
